#pragma once

#include "training/checkpoints/safetensors.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {
struct open_file;
}

namespace ringmaster::training {

/// A directory of checkpoints, a file a step: step-000123.safetensors. One run writes, any number read. A file has
/// its name only when it is whole and on the disk; one that was damaged since is found by its digest.
class checkpoint_directory {
public:
  struct checkpoint {
    uint64_t step = 0;
    safetensors_file content;
    std::vector<std::string> torn; ///< Newer ones that cannot be used, and why, a sentence each.
  };

  /// `kept`: how many checkpoints stay, at least one.
  checkpoint_directory(std::filesystem::path directory, uint32_t kept)
    : directory_(std::move(directory)), kept_(kept) {}

  /// Makes the directory where it is not there, and locks a file in it: no other run writes there as long as this one
  /// or a copy of it lives, however its process ends. Errors: in_use, where another one does; io_error.
  caf::error claim();
  /// Notes beside the lock, which this run has, which training the checkpoints are of, by a number. Errors: io_error.
  caf::error begin_training(uint64_t number);
  /// As it was recorded, maybe by an earlier run; none: never.
  std::optional<uint64_t> training() const;

  /// Writes the checkpoint of a step, in place of an earlier one of that step. Then removes the checkpoints before it
  /// that are older than the newest `kept` whole ones: a damaged file does not count, so it never causes the removal of
  /// an older one. Checkpoints of later steps stay. Where the disk has no room for the new file, the older checkpoints
  /// are removed first, all but the newest; if the newest is damaged, none is removed and the write fails. Makes the
  /// directory where it is not there. Errors: as of `write_safetensors`, and then an earlier one is there if one was;
  /// io_error also where one that is to go cannot be removed. "step" among the metadata is its number.
  caf::error save(uint64_t step, std::vector<stored_tensor> tensors, tensor_metadata metadata = {}) const;

  /// The newest that is whole and has its own step's name; nothing where there is none at all. Errors: corrupt where
  /// there are some, and none of them can be used, with what is wrong with each; io_error.
  caf::expected<std::optional<checkpoint>> newest() const;

  /// Of the checkpoints, whole or not, ascending. Errors: io_error; a directory that is not there has none.
  caf::expected<std::vector<uint64_t>> steps() const;

  std::filesystem::path file_of(uint64_t step) const;

private:
  /// Errors: as of safetensors_file::read; corrupt, where it has no digest, or says that it is of another step.
  caf::expected<safetensors_file> read(uint64_t step) const;
  caf::error remove_drafts() const;
  /// Whether it can be read and has the bytes that were written. Reads a file again only if it has changed since.
  bool is_whole(uint64_t step) const;
  /// Removes all but the newest of those before the step, if there is no space for them; whether any was removed.
  bool make_room(uint64_t step, const std::vector<stored_tensor>& tensors) const;
  /// Removes the checkpoints up to the step that are older than the newest `kept_` whole ones.
  caf::error remove_old(uint64_t step) const;

  /// What a file system says of a file: it differs once anything has written to the file, or replaced it.
  struct file_stamp {
    uint64_t inode = 0, bytes = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    friend bool operator==(const file_stamp&, const file_stamp&) = default;
  };
  static std::optional<file_stamp> stamp_of(const std::filesystem::path& file);

  std::filesystem::path directory_;
  uint32_t kept_;
  mutable std::map<uint64_t, file_stamp> whole_; ///< By step, as the file was when it was read and found whole.
  std::shared_ptr<const open_file> lock_;
};

} // namespace ringmaster::training
