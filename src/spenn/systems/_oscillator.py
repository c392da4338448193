"""Harmonic oscillator in a heat bath: a mass on a spring, damped into a bath of fixed temperature."""

import jax.numpy as jnp
import numpy as np

M, K, GAMMA, T = 1.0, 1.2, 0.4, 1.0


def velocity(x):
    q, p, _ = x[..., 0], x[..., 1], x[..., 2]
    return np.stack([p / M, -K * q - GAMMA * p / M, GAMMA * (p / M) ** 2], -1)


def midpoint(x0, dt, n):
    a = np.array([[0, 1 / M], [-K, -GAMMA / M]])
    step = np.linalg.solve(np.eye(2) - dt / 2 * a, np.eye(2) + dt / 2 * a)
    xs = [x0]
    for _ in range(n):
        x = xs[-1]
        qp = x[..., :2] @ step.T
        pm = (x[..., 1] + qp[..., 1]) / 2
        xs.append(np.concatenate([qp, (x[..., 2] + dt * GAMMA * (pm / M) ** 2)[..., None]], -1))
    return np.stack(xs, -2)
