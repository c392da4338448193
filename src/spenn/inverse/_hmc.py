"""The baseline: Bayesian physics-informed networks, sampled by Hamiltonian Monte Carlo.

The posterior is that of B-PINNs as published: weights and biases are standard normal, inputs are
not scaled, the equation is compared with the measured source at its points and nowhere else. It has
thousands of unknowns and hardly any chain gets around in it, so effective sample sizes and split
R-hat belong beside every figure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, PRNGKeyArray

from ..networks import TanhMLP
from ._problem import Problem
from ._setting import Fit, InverseConfig, Observed, Setting, as_vector, learned

CHUNK = 50


class HMCConfig(NamedTuple):
    """How many chains run how far: steps of warm-up and draws kept, each of some leapfrogs."""

    chains: int = 4
    warm_up: int = 1000
    draws: int = 1000
    leapfrogs: int = 50


class Chains(NamedTuple):
    """Draws of all chains; `raw` are the parameters before their transforms."""

    positions: Float[Array, "chain draw unknown"]
    raw: Float[np.ndarray, "chain draw p"]
    acceptance: float
    ess: Float[np.ndarray, " p"]
    rhat: Float[np.ndarray, " p"]
    fit_of: Callable[[Float[Array, " unknown"]], Fit]

    def fields(self, points: Float[Any, "point d"], count: int) -> Float[np.ndarray, "n point k"]:
        """Fields at points, of about `count` draws, evenly spaced over all chains."""
        flat = self.positions.reshape(-1, self.positions.shape[-1])
        chosen = flat[:: max(1, len(flat) // count)]
        at = jnp.asarray(points, float)
        return np.asarray(
            lax.map(lambda v: jax.vmap(self.fit_of(v).network)(at), chosen, batch_size=CHUNK)
        )


def require_blackjax() -> Any:
    """BlackJAX, or a sentence on how to get it."""
    try:
        import blackjax
    except ImportError:
        raise ValueError(
            "the method hmc needs BlackJAX: install it with  pip install 'spenn[hmc]'."
        ) from None
    return blackjax


def log_density(problem: Problem, config: InverseConfig) -> tuple[Callable, Callable, int]:
    """Logarithm of the posterior of a vector, the fit it stands for, and its length."""
    setting = Setting.of(problem)
    size, outputs = len(problem.lower), len(problem.names)
    plain = TanhMLP(
        jnp.zeros(size),
        jnp.ones(size),
        jnp.ones(outputs),
        config.width,
        config.depth,
        key=jax.random.key(0),
    )
    theta, of = as_vector(Fit(plain, jnp.zeros(len(problem.parameters)), jnp.zeros((0, 0))))
    compared = _compared(problem, setting)

    def density(vector):
        fit = of(vector)
        residual = problem.residual(fit.network, problem.constants(fit.raw))
        weights = jax.tree.leaves(eqx.filter(fit, learned(fit)).network)
        squares = [
            setting.field.errors(fit.network),
            compared.errors(lambda s: jnp.atleast_1d(residual(s))),
            setting.prior_errors(fit),
            *weights,
        ]
        return -jnp.sum(jnp.stack([jnp.sum(e**2) for e in squares])) / 2

    return density, of, theta.size


def _compared(problem: Problem, setting: Setting) -> Observed:
    """What the equation should leave, and where: the measured source, or nothing."""
    if problem.source is not None:
        return setting.measured_source
    points = setting.collocation(jax.random.key(0), problem.collocation)
    return Observed(points, jnp.zeros((len(points), 1)), jnp.asarray(problem.tolerance, float))


Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Sampler:
    """The chains of a problem, all at once, shared out over the devices of this process."""

    problem: Problem
    hmc: HMCConfig
    density: Callable
    fit_of: Callable
    size: int

    @classmethod
    def of(cls, problem: Problem, config: InverseConfig, hmc: HMCConfig) -> "Sampler":
        """A sampler for a problem; says how to get BlackJAX where it is missing."""
        require_blackjax()
        return cls(problem, hmc, *log_density(problem, config))

    def warm_up(self, *, key: PRNGKeyArray, report: Report = lambda *_: None) -> Any:
        """Find step sizes and masses, from small random weights on."""
        blackjax, hmc = require_blackjax(), self.hmc
        start_key, warm_key = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.hmc,
            self.density,
            initial_step_size=1e-3,
            num_integration_steps=hmc.leapfrogs,
            adaptation_info_fn=lambda state, info, adapted: None,
        )

        def one(key, start):
            (state, tuned), _ = adaptation.run(key, start, num_steps=hmc.warm_up)
            return state, tuned["step_size"], tuned["inverse_mass_matrix"]

        report("warm-up", 0, hmc.warm_up)
        starts = 0.3 * jax.random.normal(start_key, (hmc.chains, self.size))
        keys = jax.random.split(warm_key, hmc.chains)
        chains = jax.block_until_ready(_over_chains(one, hmc.chains)(keys, starts))
        report("warm-up", hmc.warm_up, hmc.warm_up)
        return chains

    def draw(self, warm: Any, *, key: PRNGKeyArray, report: Report = lambda *_: None) -> Chains:
        """Run chains on from where `warm_up` left them."""
        blackjax, hmc = require_blackjax(), self.hmc

        def one(keys, chain):
            state, step_size, inverse_mass = chain
            kernel = blackjax.hmc(self.density, step_size, inverse_mass, hmc.leapfrogs)

            def step(state, key):
                state, info = kernel.step(key, state)
                return state, (state.position, info.acceptance_rate)

            state, drawn = lax.scan(step, state, keys)
            return (state, step_size, inverse_mass), drawn

        advance, parts, chain = _over_chains(one, hmc.chains), [], warm
        keys = jax.random.split(key, (hmc.chains, hmc.draws))
        for done in range(0, hmc.draws, CHUNK):
            chain, drawn = advance(keys[:, done : done + CHUNK], chain)
            parts.append(jax.block_until_ready(drawn))
            report("draws", min(CHUNK, hmc.draws - done), hmc.draws)
        positions, acceptance = (jnp.concatenate(part, 1) for part in zip(*parts, strict=True))
        return self._judged(positions, float(jnp.mean(acceptance)))

    def _judged(self, positions: Float[Array, "chain draw unknown"], acceptance: float) -> Chains:
        """Draws with what they are worth."""
        raw = jax.vmap(jax.vmap(lambda v: self.fit_of(v).raw))(positions)
        values = np.stack(list(self.problem.constants(raw).values()), -1)
        ess = require_blackjax().diagnostics.effective_sample_size(values)
        rhat = split_rhat(values)
        raw = np.asarray(raw)
        return Chains(positions, raw, acceptance, np.reshape(ess, -1), rhat, self.fit_of)


def split_rhat(values: Float[np.ndarray, "chain draw p"]) -> Float[np.ndarray, " p"]:
    """Potential scale reduction of chains cut in halves: one where all halves agree."""
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    within = halves.var(1, ddof=1).mean(0)
    between = halves.mean(1).var(0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def _over_chains(function: Callable, chains: int) -> Callable:
    """A function of one chain for all of them, on as many devices as divide them."""
    devices = jax.local_devices()
    count = max(n for n in range(1, len(devices) + 1) if chains % n == 0)
    many = jax.vmap(function)
    if count == 1:
        return jax.jit(many)
    spec = PartitionSpec("chain")
    mesh = Mesh(np.array(devices[:count]), ("chain",))
    return jax.jit(jax.shard_map(many, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
