"""How good the stated uncertainty is, and intervals that keep their promise."""

from ._conformal import Conformal as Conformal
from ._conformal import conformal_rank as conformal_rank
from ._conformal import coverage_range as coverage_range
from ._conformal import fewest as fewest
from ._conformal import normalised_score as normalised_score
from ._coverage import Coverage as Coverage
from ._coverage import calibrated_coverage as calibrated_coverage
from ._coverage import entry_coverage as entry_coverage
from ._coverage import quantile_intervals as quantile_intervals
from ._coverage import raw_coverage as raw_coverage
from ._coverage import simultaneous_coverage as simultaneous_coverage
from ._scores import Score as Score
from ._scores import crps as crps
from ._scores import energy_score as energy_score
from ._scores import rank_correlation as rank_correlation
from ._scores import rank_histogram as rank_histogram
from ._scores import relative_l2_error as relative_l2_error
from ._scores import sharpness as sharpness
