"""
Draw the common parts of figures: their look (`theme`), and points and lines (`primitives`).

`theme.finish` stores in every figure's `layout.meta`: `name` (file name without ending), `alt`, `caption`, and `csv`,
the numbers drawn. Figure functions read no file.
"""
