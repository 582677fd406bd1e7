"""The site: pages of docs/, with parts made from the code and the results, built by Sphinx in two languages."""
