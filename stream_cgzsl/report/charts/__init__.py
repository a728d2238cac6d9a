"""Charts as SVG: sharp at every width, with text that never shrinks.

A drawing has no view box: coordinates are in percent of its width and height. It takes any width, while text, markers
and strokes keep their size. Only lines are in a nested drawing that is stretched.
"""
