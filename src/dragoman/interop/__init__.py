"""Foreign formats, one file for each: conversion only."""
