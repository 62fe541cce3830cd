#pragma once

#include "runtime/trust/certificates.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// An authority and the certificates that it has signed, in files: authority.pem, authority.key, and NAME.pem and
/// NAME.key for each host, person and program. Keys are 0600. What exists stays as it is.
class certificate_directory {
public:
  using time_point = std::chrono::system_clock::time_point;

  /// Reads the authority there, or makes one that is valid for ten years, with the directory (0700). Errors: io_error;
  /// invalid_argument, where one of its two files is missing, or is not what it should be.
  static caf::expected<certificate_directory> open(const std::filesystem::path& where, time_point now);

  struct entry {
    std::filesystem::path certificate, key;
    bool is_new;
  };
  /// That of a host: for its name and the addresses that this has here at present, and for loopback; that of this host
  /// for all of its addresses. Errors: as above;
  /// invalid_argument, where it exists and is no longer valid.
  caf::expected<entry> for_host(const std::string& host, std::chrono::days length);
  /// That of a person or program, which connects from anywhere.
  caf::expected<entry> for_name(const std::string& name, role as, std::chrono::days length);

  std::filesystem::path authority() const { return where_ / "authority.pem"; }
  bool authority_is_new() const { return is_new_; }

private:
  certificate_directory(std::filesystem::path where, time_point now) : where_(std::move(where)), now_(now) {}
  caf::expected<entry> find_or_make(const certificate_subject& whose, std::chrono::days length);

  std::filesystem::path where_;
  time_point now_;
  certified_key authority_;
  bool is_new_ = false;
};

} // namespace ringmaster::launch
