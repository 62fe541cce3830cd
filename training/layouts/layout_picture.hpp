#pragma once

#include "training/layouts/tensor_layout.hpp"

#include <caf/expected.hpp>

#include <string>

namespace ringmaster::training {

/// Of each side, and of the layers.
inline constexpr uint32_t layout_picture_side_max = 16, layout_picture_layers_max = 8;

/// A layout as a picture, SVG: a box for each rank, data indices below each other; in it each layer's whole weight with
/// the rank's part filled, and at the left each data index's slice of the samples. Errors: invalid_argument for more
/// ranks along a side, or layers, than can be seen.
caf::expected<std::string> picture_of(const tensor_layout& layout);

} // namespace ringmaster::training
