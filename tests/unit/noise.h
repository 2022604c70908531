// Seeded noise for simulations in tests.
#pragma once

#include <cmath>
#include <numbers>

#include "storage/base/random.h"

namespace labrack {

// Standard normal, by Box and Muller.
inline double StandardNormal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Unit()));
  return radius * std::cos(2 * std::numbers::pi * random.Unit());
}

}  // namespace labrack
