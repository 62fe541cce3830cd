#include "training/data/data_set.hpp"

#include "messages/errc.hpp"
#include "runtime/links/link_checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    } catch (const std::exception& x) { // a user-defined set
      return make_error(errc::io_error, fmt::format("sample {} of {}: {}", samples[i], name(), x.what()));
    }
  return damage();
}

uint64_t data_set::digest() const {
  constexpr uint64_t bytes_max = 16 << 20, samples_min = 16;
  const auto elements = shape().elements();
  const auto wanted = std::min<uint64_t>(count(), std::max(bytes_max / (elements * sizeof(float)), samples_min));
  std::vector<uint64_t> all{count(), elements, label_count(), labels_each()};
  std::vector<float> inputs(elements);
  std::vector<uint32_t> labels(labels_each());
  for (uint64_t i = 0; i < wanted; ++i) {
    const auto sample = static_cast<uint32_t>(i * count() / wanted);
    if (fill({&sample, 1}, inputs, labels)) { // one that cannot be read counts as zeros
      std::ranges::fill(inputs, 0.f);
      std::ranges::fill(labels, 0u);
    }
    all.push_back(link_checksum(std::as_bytes(std::span{inputs})));
    all.push_back(link_checksum(std::as_bytes(std::span{labels})));
  }
  return link_checksum(std::as_bytes(std::span{all}));
}

} // namespace ringmaster::training
