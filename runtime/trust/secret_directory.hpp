#pragma once

#include "runtime/trust/secret.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Where the processes of a user on this host find the secrets that none of them was given by name: the directory
/// `ringmaster` in $XDG_RUNTIME_DIR, else in /run/user/UID, else `ringmaster-UID` in $TMPDIR, else in /tmp. A file
/// there is used only if the directory belongs to this user, and no other user has access.
class secret_directory {
public:
  /// The places in which it may be, in order. `environment` has XDG_RUNTIME_DIR and TMPDIR; empty: not set.
  struct environment {
    std::string runtime_dir, temporary_dir;
  };
  static environment of_this_process();
  explicit secret_directory(const environment& where = of_this_process());

  /// The file of the coordinator that listens at this port: "7077.secret".
  static std::string name_for(uint16_t port);
  /// The file of nodes that wait for a coordinator, and of a coordinator that lists nodes.
  static constexpr const char* name_for_nodes = "nodes.secret";

  struct found {
    shared_secret secret;
    std::filesystem::path file;
  };
  /// Errors: io_error, which names all places, where there is none; else of the first that has one: as of
  /// shared_secret::read, and invalid_argument, where other users have access to the directory.
  caf::expected<found> find(const std::string& name) const;
  /// The same, or a new one where there is none. Several processes may call it at once: all get the same. Errors: as
  /// above, and as of shared_secret::create.
  caf::expected<found> find_or_make(const std::string& name) const;
  /// Stores it, in place of another one. Returns the file. Errors: as above.
  caf::expected<std::filesystem::path> store(const std::string& name, const shared_secret& secret) const;

private:
  /// Makes the directory where it can be. Errors: io_error, invalid_argument.
  caf::expected<std::filesystem::path> make() const;

  std::vector<std::filesystem::path> places_;
};

/// The secret in this file, which is made if there is none, with its directory (0700). Errors: as above.
caf::expected<shared_secret> find_or_make_secret(const std::filesystem::path& file);

} // namespace ringmaster
