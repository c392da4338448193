"""What people read: figures, tables, pages."""

from ._inverse import Estimate as Estimate
from ._inverse import InverseView as InverseView
from ._inverse import Panel as Panel
from ._inverse_table import print_inverse as print_inverse
from ._table import print_tables as print_tables
from ._view import FieldView as FieldView
from ._view import MethodView as MethodView
from ._view import PageMethod as PageMethod
from ._view import PageView as PageView
from ._view import RunView as RunView
from .figures import draw_figures as draw_figures
from .figures import draw_inverse as draw_inverse
from .page import write_comparison as write_comparison
from .page import write_inverse_page as write_inverse_page
from .page import write_page as write_page
