#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace ringmaster::training {

/// A file of events with scalars for TensorBoard. Each event is a TFRecord: length, masked CRC-32C of the length, the
/// event, masked CRC-32C of the event, all little-endian. What has been flushed stays readable if the process is
/// killed: readers ignore an incomplete last record.
class event_file {
public:
  struct scalar {
    std::string_view tag; ///< "loss/training"; the part before the slash groups charts.
    double value;
  };

  /// Makes `directory` if necessary, and a new file in it: "events.out.tfevents.TIME.HOST.NUMBER". `seconds`: the time
  /// since 1970. Errors: io_error.
  static caf::expected<event_file> create(const std::filesystem::path& directory, double seconds);

  /// Adds an event with all of `scalars`. Errors: io_error.
  caf::error add(uint64_t step, double seconds, std::span<const scalar> scalars);

  /// Errors: io_error.
  caf::error flush();

  const std::filesystem::path& path() const { return path_; }

private:
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  event_file(std::filesystem::path path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  caf::error append(std::string_view event);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, closer> file_;
};

/// CRC-32C (Castagnoli) of the bytes, rotated and shifted as TFRecord files have it, so that a checksum of data with
/// checksums is no fixed point.
uint32_t masked_crc32c(std::string_view bytes);

} // namespace ringmaster::training
