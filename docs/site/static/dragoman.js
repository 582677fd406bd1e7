"use strict";
// What the theme leaves out for readers without a mouse or without a screen: what scrolls can be reached by Tab, and the
// two side bars have names.
addEventListener("DOMContentLoaded", () => {
  const chinese = document.documentElement.lang.startsWith("zh");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", chinese ? "导航" : "Navigation");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", chinese ? "本页目录" : "On this page");
  const reach = () => {
    for (const one of document.querySelectorAll("pre, .table-wrapper, p:has(> img.wide)")) {
      if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
  };
  reach();
  addEventListener("load", reach);
  addEventListener("resize", reach);
});
