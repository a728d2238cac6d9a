"""Charts as SVG: sharp at every width, with text that never shrinks.

A drawing has no view box of its own: places are given in percent of its width and height, so that it takes whatever width
there is, while letters, marks and strokes keep their size. Only lines live in a nested drawing that is stretched.
"""
