#include "runtime/training/data/data_set.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <exception>

namespace ringmaster::training {

std::string sample_shape::text() const {
  return fmt::format("{}x{}x{}", channels, rows, columns);
}

caf::error data_set::fill(std::span<const uint32_t> samples, std::span<float> inputs,
                          std::span<uint32_t> labels) const {
  const auto elements = shape().elements();
  const auto each = labels_each();
  const auto fits = [](size_t room, size_t wanted) { return room == 0 || room == wanted; };
  if (!fits(inputs.size(), samples.size() * elements) || !fits(labels.size(), samples.size() * each))
    return make_error(
      errc::size_mismatch,
      fmt::format("{} samples of {} have {} x {} inputs and {} x {} labels; there is room for {} and {}",
                  samples.size(), name(), samples.size(), elements, samples.size(), each, inputs.size(),
                  labels.size()));
  for (auto sample : samples)
    if (sample >= count())
      return make_error(errc::out_of_range,
                        fmt::format("there is no sample {} of {}, which has {}", sample, name(), count()));
  for (size_t i = 0; i < samples.size(); ++i)
    try {
      fill_one(samples[i], inputs.empty() ? inputs : inputs.subspan(i * elements, elements),
               labels.empty() ? labels : labels.subspan(i * each, each));
    } catch (const std::exception& x) { // a set of somebody's own
      return make_error(errc::io_error, fmt::format("sample {} of {}: {}", samples[i], name(), x.what()));
    }
  return damage();
}

} // namespace ringmaster::training
