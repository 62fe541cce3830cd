#pragma once

#include "planner/models/known_models.hpp"

namespace ringmaster::test {

inline const training::language_model small_gpt = training::gpt_shape("small", 256, 4, 8, 128, 1000);

} // namespace ringmaster::test
