#pragma once

#include "training/data/data_set.hpp"
#include "training/data/file_bytes.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ringmaster::training {

struct text_file {
  std::string name; ///< Its path below the folder.
  std::shared_ptr<const file_bytes> content;
  size_t mark_bytes = 0; ///< Of its byte order mark, which is no part of the text.

  std::span<const std::byte> bytes() const { return content->bytes().subspan(mark_bytes); }
};

/// The files of a folder, and of those in it, that are text: well-formed UTF-8 without a zero byte, and not empty. By
/// name, so the same on every machine. What has a name that begins with a point is not looked at, nor a folder `build`,
/// where programs are made of the texts; links to files are followed, those to folders named, as all is that cannot be
/// read.
struct text_folder {
  std::vector<text_file> training, held_out;
  std::vector<std::string> skipped{}; ///< "a.bin: it is no text (UTF-8)", a sentence each.
};

/// Whether the file of this name is among so large a part of all that are held out: where mixed_bits of its FNV-1a hash
/// and the seed is below that part of 2^64. So it follows from name and seed alone, whatever other files there are.
bool is_held_out(std::string_view name, uint64_t seed, double part);

/// Where one side would have no file, the file of the smallest or of the largest number goes there. Errors: io_error
/// for a folder that cannot be read; invalid_argument for one with less than two files of text, or more than 2^20
/// files, and for a part that is not between 0 and 1.
caf::expected<text_folder> read_text_folder(const std::filesystem::path& folder, uint64_t seed, double held_out_part);

/// Text as bytes. A sample is a window of a fixed number of bytes of one file, each an input from 0 to 255; its labels
/// are the bytes that follow each of them, so those of the window, moved by one.
class byte_windows final : public data_set {
public:
  static constexpr uint32_t window_max = 1 << 20;

  /// Windows begin at every `stride`th byte of each file; with the window's length each byte but a file's first, and
  /// what is left at its end, is a label once. Files with less than a window and a byte have none. Errors:
  /// invalid_argument where window or stride are not 1 to `window_max`, and for no window, or more than 32 bits count.
  static caf::expected<std::shared_ptr<const byte_windows>> over(std::vector<text_file> files, uint32_t window,
                                                                 uint32_t stride);

  std::string name() const override { return "bytes"; }
  uint32_t count() const override { return static_cast<uint32_t>(ends_.back()); }
  sample_shape shape() const override { return {1, 1, window_}; }
  uint32_t label_count() const override { return 256; }
  uint32_t labels_each() const override { return window_; }
  uint64_t digest() const override;

  const std::vector<text_file>& files() const { return files_; }
  /// A sample's window and the byte after it. The sample exists.
  std::span<const std::byte> text_of(uint32_t sample) const;

private:
  byte_windows(std::vector<text_file> files, uint32_t window, uint32_t stride);
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override;
  caf::error damage() const override;

  std::vector<text_file> files_;
  uint32_t window_, stride_;
  std::vector<const file_bytes*> mapped_; ///< The files that another process may truncate.
  std::vector<uint64_t> ends_{0};         ///< 0, and where the samples of each file end.
  mutable std::once_flag is_digested_;
  mutable uint64_t digest_ = 0;
};

} // namespace ringmaster::training
