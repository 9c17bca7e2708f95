"""Monte-Carlo privacy auditing of differentially private statistical model checking.

`__init__.pyi` lists the public names. Python imports the module behind a name when the name is first used, so
``import dpsmc_audit`` is fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
