"""Foreign formats: conversion only, one file each."""
