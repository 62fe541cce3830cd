#pragma once

#include <ringmaster/strategy/group.hpp>
#include <ringmaster/strategy/range_set.hpp>

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// Which side of a layer's weight is cut over the ranks of a tensor group.
enum class layer_cut : uint8_t { columns, rows };

/// A linear layer: its weight has a row for each input and a column for each output.
struct cut_layer {
  std::string name;
  uint64_t rows = 1, columns = 1;
  layer_cut cut = layer_cut::columns;
};

/// Of a layer's weight.
struct layer_part {
  range rows, columns;
};

/// "hidden:768x256:columns": name, inputs x outputs, and what is cut. Errors: invalid_argument.
caf::expected<cut_layer> parse_layer(std::string_view text);

/// Who has which part of a model and of the data where `tensor` neighbours share each layer, and each such group has a
/// slice of the data: rank = data index x tensor + tensor index.
class tensor_layout {
public:
  static constexpr uint32_t ranks_max = 1 << 16;

  /// `samples`: 0 where the data is not said. Errors: invalid_argument, naming what does not divide, layers of one name
  /// and fewer samples than slices.
  static caf::expected<tensor_layout> of(uint32_t ranks, uint32_t tensor, std::vector<cut_layer> layers,
                                         uint64_t samples = 0);

  uint32_t ranks() const { return sides_.size(); }
  /// One pipeline stage; gives each rank's indices and groups.
  const mesh& sides() const { return sides_; }
  const std::vector<cut_layer>& layers() const { return layers_; }
  uint64_t samples() const { return samples_; }

  layer_part part_of(const cut_layer& layer, uint32_t rank) const;
  /// The rank's slice of the data, larger than another by one sample at most.
  range samples_of(uint32_t rank) const;

private:
  tensor_layout(mesh sides, std::vector<cut_layer> layers, uint64_t samples)
    : sides_(sides), layers_(std::move(layers)), samples_(samples) {}

  mesh sides_;
  std::vector<cut_layer> layers_;
  uint64_t samples_;
};

} // namespace ringmaster::training
