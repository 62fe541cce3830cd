#include "runtime/trust/secret_directory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ringmaster {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

/// Whether no other user can put a file there, or read one. `what`: for errors.
caf::error check_private(const fs::path& directory) {
  struct stat about {};
  if (::lstat(directory.c_str(), &about) != 0)
    return make_error(errc::io_error,
                      fmt::format("the directory {} cannot be used: {}", directory.string(), std::strerror(errno)));
  if (!S_ISDIR(about.st_mode)) // nor a link to one, which may change
    return invalid(fmt::format("{} is no directory: remove it, or set XDG_RUNTIME_DIR to another one",
                               directory.string()));
  if (about.st_uid != ::geteuid())
    return invalid(fmt::format("the directory {} belongs to another user (uid {}): set XDG_RUNTIME_DIR to one of your "
                               "own, or trust.secret-file",
                               directory.string(), about.st_uid));
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return invalid(fmt::format("the directory {} has the permissions {:04o}, so other users have access to it: chmod "
                               "700 {}",
                               directory.string(), about.st_mode & 07777, directory.string()));
  return caf::none;
}

} // namespace

secret_directory::environment secret_directory::of_this_process() {
  return {variable("XDG_RUNTIME_DIR"), variable("TMPDIR")};
}

secret_directory::secret_directory(const environment& where) {
  const auto add = [&](const fs::path& base, const std::string& name) {
    const auto place = base / name;
    if (std::ranges::find(places_, place) == places_.end())
      places_.push_back(place);
  };
  const auto of_user = fmt::format("ringmaster-{}", ::geteuid());
  if (!where.runtime_dir.empty())
    add(where.runtime_dir, "ringmaster");
  else
    add(fmt::format("/run/user/{}", ::geteuid()), "ringmaster");
  if (!where.temporary_dir.empty())
    add(where.temporary_dir, of_user);
  add("/tmp", of_user);
}

std::string secret_directory::name_for(uint16_t port) {
  return fmt::format("{}.secret", port);
}

caf::expected<secret_directory::found> secret_directory::find(const std::string& name) const {
  std::vector<std::string> looked_at;
  for (auto& place : places_) {
    std::error_code ignored;
    const auto file = place / name;
    looked_at.push_back(file.string());
    if (!fs::exists(fs::symlink_status(file, ignored)))
      continue;
    RETURN_ERROR(check_private(place));
    TRY(secret, shared_secret::read(file));
    return found{std::move(*secret), file};
  }
  return make_error(errc::io_error, fmt::format("there is no file {}", fmt::join(looked_at, " nor ")));
}

caf::expected<fs::path> secret_directory::make() const {
  caf::error problem;
  for (auto& place : places_) {
    if (::mkdir(place.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      problem = make_error(errc::io_error,
                           fmt::format("the directory {} cannot be made: {}", place.string(), std::strerror(errno)));
      continue;
    }
    problem = check_private(place);
    if (!problem)
      return place;
  }
  return problem;
}

caf::expected<secret_directory::found> secret_directory::find_or_make(const std::string& name) const {
  constexpr int tries = 3; // another process may make one, or remove it, at the same time
  for (int i = 1;; ++i) {
    auto known = find(name);
    if (known || code_of(known.error()) != errc::io_error)
      return known;
    TRY(place, make());
    auto secret = shared_secret::random();
    auto problem = secret.create(*place / name);
    if (!problem)
      return found{std::move(secret), *place / name};
    if (code_of(problem) != errc::in_use || i == tries)
      return problem;
  }
}

caf::expected<fs::path> secret_directory::store(const std::string& name, const shared_secret& secret) const {
  if (auto known = find(name); known && known->secret == secret)
    return known->file;
  TRY(place, make());
  RETURN_ERROR(secret.replace(*place / name));
  return *place / name;
}

caf::expected<shared_secret> find_or_make_secret(const fs::path& file) {
  std::error_code problem;
  if (fs::exists(fs::symlink_status(file, problem)))
    return shared_secret::read(file);
  const auto directory = file.parent_path();
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return make_error(errc::io_error,
                      fmt::format("the directory {} cannot be made: {}", directory.string(), std::strerror(errno)));
  auto secret = shared_secret::random();
  auto failure = secret.create(file);
  if (!failure)
    return secret;
  if (code_of(failure) != errc::in_use)
    return failure;
  return shared_secret::read(file);
}

} // namespace ringmaster
