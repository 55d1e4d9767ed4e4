"""Hold, per page, what this page alone needs: what it measures (`design`), its analyses, figures and claims."""

from pkgutil import iter_modules

from wanbench import submodules

__getattr__, __dir__ = submodules(__name__, " ".join(module.name for module in iter_modules(__path__)))
