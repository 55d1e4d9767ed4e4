"""Whether a factorial model fits: tested against replicates, or else for curvature."""

from __future__ import annotations

from math import nan

import numpy as np
from scipy import stats

NOTHING = 1e-12
"""Share of the total sum of squares below which residuals are rounding errors."""
REPLICATES, BEND = "replicates", "a bend"


def lack_of_fit(design: np.ndarray, response: np.ndarray, cells: np.ndarray, squares: np.ndarray):
    """
    The p-value of an F test, and what the model was tested against.

    With replicates it is tested against a separate mean for each combination of levels. Without, against squares of the
    factors and of the fitted values (Tukey's degree of freedom for non-additivity, 1949). That detects curvature along
    a factor and joint saturation only.

    Parameters
    ----------
    design : array (runs, coefficients)
    response : array (runs,)
    cells : array (runs, combinations)
        An indicator per combination of levels, and the columns of the blocks.
    squares : array (runs, any)
        Squares of the codes of factors with three levels or more.

    Returns
    -------
    (float, str)
        NaN if too few runs are left for a test.
    """
    basis, left = _residual(design, response)
    freedom = len(response) - basis.shape[1]
    every, pure = _residual(np.column_stack([design, cells]), response)
    if (against := len(response) - every.shape[1]) >= 1:
        return _f_test(left @ left, pure @ pure, freedom, against, response), REPLICATES
    fitted = response - left
    added = np.column_stack([squares, (fitted - fitted.mean()) ** 2])
    every, pure = _residual(np.column_stack([design, added]), response)
    return _f_test(left @ left, pure @ pure, freedom, len(response) - every.shape[1], response), BEND


def _residual(columns: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of the columns, and the part of the response outside it."""
    vectors, values, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    basis = vectors[:, values > 1e-9 * values[0]]
    return basis, response - basis @ (basis.T @ response)


def _f_test(less: float, more: float, freedom: int, against: int, response: np.ndarray) -> float:
    if against < 1 or freedom <= against or more <= NOTHING * max(float(response @ response), 1e-300):
        return nan
    return float(stats.f.sf((less - more) / (freedom - against) / (more / against), freedom - against, against))
