#include "training/data/byte_windows.hpp"

#include "messages/errc.hpp"
#include "runtime/links/link_checksum.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

byte_windows::byte_windows(std::vector<text_file> files, uint32_t window, uint32_t stride)
  : files_(std::move(files)), window_(window), stride_(stride) {
  for (auto& file : files_) {
    if (file.content->is_mapped())
      mapped_.push_back(file.content.get());
    const uint64_t bytes = file.bytes().size();
    ends_.push_back(ends_.back() + (bytes > window_ ? (bytes - window_ - 1) / stride_ + 1 : 0));
  }
}

caf::expected<std::shared_ptr<const byte_windows>> byte_windows::over(std::vector<text_file> files, uint32_t window,
                                                                      uint32_t stride) {
  for (auto length : {window, stride})
    if (length == 0 || length > window_max)
      return invalid(fmt::format("a window of text and the way to the next must be 1 to {} bytes, and one is {}",
                                 window_max, length));
  std::shared_ptr<const byte_windows> result{new byte_windows{std::move(files), window, stride}};
  const auto count = result->ends_.back();
  if (count == 0)
    return invalid(fmt::format("no file has a window of {} bytes and one more to predict", window));
  if (count > UINT32_MAX)
    return invalid(fmt::format("{} windows are more than {}: let them begin further apart than {} bytes", count,
                               UINT32_MAX, stride));
  return result;
}

uint64_t byte_windows::digest() const {
  std::call_once(is_digested_, [this] {
    std::vector<uint64_t> all{window_, stride_};
    for (auto& file : files_) {
      all.push_back(link_checksum(std::as_bytes(std::span{file.name})));
      all.push_back(link_checksum(file.bytes()));
    }
    digest_ = link_checksum(std::as_bytes(std::span{all}));
  });
  return digest_;
}

std::span<const std::byte> byte_windows::text_of(uint32_t sample) const {
  const auto end = std::ranges::upper_bound(ends_, uint64_t{sample}); // of the file that it is in
  const auto bytes = files_[static_cast<size_t>(end - ends_.begin()) - 1].bytes();
  return bytes.subspan((sample - *std::prev(end)) * stride_, window_ + 1);
}

void byte_windows::fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const {
  const auto text = text_of(sample);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(std::to_integer<uint8_t>(text[i]));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = std::to_integer<uint8_t>(text[i + 1]);
}

caf::error byte_windows::damage() const {
  for (auto* file : mapped_)
    if (auto problem = file->damage())
      return problem;
  return caf::none;
}

} // namespace ringmaster::training
