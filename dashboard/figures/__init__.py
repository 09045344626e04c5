"""Figures from the API's answers, one module per noun. Pure functions.

Colours, titles and definitions come from `headway.metrics`. Text colours are left to the page's
theme, so that one figure reads well on a light and on a dark background.
"""
