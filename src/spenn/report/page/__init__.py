"""`report.html`: one file that a person can open, read, print and send on.

It needs no network and no other file. Python writes what does not change (the verdict and the
tables, so that they are there without JavaScript too) and packs the arrays; a few hundred lines of
plain JavaScript in `assets/` draw what can be chosen.
"""

from ._comparison import render_comparison as render_comparison
from ._comparison import write_comparison as write_comparison
from ._inverse import render_inverse_page as render_inverse_page
from ._inverse import write_inverse_page as write_inverse_page
from ._page import render_page as render_page
from ._page import write_page as write_page
