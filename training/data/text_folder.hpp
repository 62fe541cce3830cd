#pragma once

#include "training/data/file_bytes.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
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

} // namespace ringmaster::training
