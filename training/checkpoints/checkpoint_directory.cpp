#include "training/checkpoints/checkpoint_directory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/memory/open_file.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "training/checkpoints/durable_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view checkpoint_prefix = "step-", checkpoint_suffix = ".safetensors";
constexpr auto step_key = "step";         ///< Of a file's metadata.
constexpr auto lock_name = "writer.lock"; ///< Stays when no process writes: removing it could remove the next one's.

std::string name_of(uint64_t step) {
  return fmt::format("{}{:06}{}", checkpoint_prefix, step, checkpoint_suffix);
}

/// Nothing where it is no checkpoint's name.
std::optional<uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(checkpoint_prefix) || !name.ends_with(checkpoint_suffix))
    return std::nullopt;
  const auto digits = name.substr(checkpoint_prefix.size(),
                                  name.size() - checkpoint_prefix.size() - checkpoint_suffix.size());
  auto step = parse_whole(digits, 0);
  return step && name_of(*step) == name ? std::optional{*step} : std::nullopt;
}

caf::error refused_by_system(const fs::path& path, std::string_view what, const std::error_code& why) {
  return make_error(write_failure(why.value()), fmt::format("{}: {}: {}", path.string(), what, why.message()));
}

/// The names in a directory; none where it is not there.
caf::expected<std::vector<std::string>> names_of(const fs::path& directory) {
  std::vector<std::string> result;
  std::error_code problem;
  fs::directory_iterator at{directory, problem}, end;
  for (; !problem && at != end; at.increment(problem))
    result.push_back(at->path().filename().string());
  if (problem && problem != std::errc::no_such_file_or_directory)
    return refused_by_system(directory, "cannot be read", problem);
  return result;
}

} // namespace

fs::path checkpoint_directory::file_of(uint64_t step) const {
  return directory_ / name_of(step);
}

caf::error checkpoint_directory::claim() {
  std::error_code problem;
  if (fs::create_directories(directory_, problem); problem)
    return refused_by_system(directory_, "cannot be made a directory", problem);
  const auto file = directory_ / lock_name;
  auto opened = std::make_shared<const open_file>(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (opened->descriptor < 0)
    return refused_by_system(file, "cannot be made", {errno, std::system_category()});
  if (::flock(opened->descriptor, LOCK_EX | LOCK_NB) == 0) {
    lock_ = std::move(opened);
    return caf::none;
  }
  if (errno != EWOULDBLOCK)
    return refused_by_system(file, "cannot be locked", {errno, std::system_category()});
  return make_error(errc::in_use,
                    fmt::format("{}: another run writes its checkpoints there, and has not ended: this one needs "
                                "another folder, or its end",
                                directory_.string()));
}

caf::error checkpoint_directory::begin_training(uint64_t number) {
  const auto text = std::to_string(number);
  const bool written = ::pwrite(lock_->descriptor, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())
                       && ::ftruncate(lock_->descriptor, static_cast<off_t>(text.size())) == 0;
  return written ? caf::error{}
                 : refused_by_system(directory_ / lock_name, "cannot be written", {errno, std::system_category()});
}

std::optional<uint64_t> checkpoint_directory::training() const {
  char text[20]; // the most digits
  const auto size = ::pread(lock_->descriptor, text, sizeof text, 0);
  const auto number = parse_whole({text, static_cast<size_t>(std::max<ssize_t>(size, 0))}, 1);
  return number ? std::optional{*number} : std::nullopt;
}

caf::expected<std::vector<uint64_t>> checkpoint_directory::steps() const {
  TRY(names, names_of(directory_));
  std::vector<uint64_t> result;
  for (auto& name : *names)
    if (auto step = step_of(name))
      result.push_back(*step);
  std::sort(result.begin(), result.end());
  return result;
}

/// Of a process that ended while it was writing.
caf::error checkpoint_directory::remove_drafts() const {
  TRY(names, names_of(directory_));
  for (auto& name : *names) {
    std::error_code problem;
    if (name.ends_with(draft_suffix) && step_of(name.substr(0, name.size() - std::string_view{draft_suffix}.size()))
        && !fs::remove(directory_ / name, problem) && problem)
      return refused_by_system(directory_ / name, "cannot be removed", problem);
  }
  return caf::none;
}

std::optional<checkpoint_directory::file_stamp> checkpoint_directory::stamp_of(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0)
    return std::nullopt;
  const auto nanoseconds = [](const timespec& x) { return int64_t{x.tv_sec} * 1'000'000'000 + x.tv_nsec; };
  return file_stamp{found.st_ino, static_cast<uint64_t>(found.st_size), nanoseconds(found.st_mtim),
                    nanoseconds(found.st_ctim)};
}

bool checkpoint_directory::is_whole(uint64_t step) const {
  const auto now = stamp_of(file_of(step)); // before it is read: what is written meanwhile changes it
  if (!now)
    return false;
  if (const auto known = whole_.find(step); known != whole_.end() && known->second == *now)
    return true;
  whole_.erase(step);
  if (!read(step))
    return false;
  whole_[step] = *now;
  return true;
}

bool checkpoint_directory::make_room(uint64_t step, const std::vector<stored_tensor>& tensors) const {
  uint64_t bytes = 0;
  for (auto& tensor : tensors)
    bytes += tensor.bytes.size();
  std::error_code problem;
  const auto free = fs::space(directory_, problem).available;
  auto all = steps();
  if (problem || free > bytes || !all)
    return false;
  std::erase_if(*all, [&](uint64_t each) { return each >= step; });
  if (all->size() < 2 || !is_whole(all->back()))
    return false;
  all->pop_back();
  bool gone = false;
  for (auto each : *all)
    gone = fs::remove(file_of(each), problem) || gone;
  return gone;
}

caf::error checkpoint_directory::save(uint64_t step, std::vector<stored_tensor> tensors,
                                      tensor_metadata metadata) const {
  metadata[step_key] = std::to_string(step);
  std::error_code problem;
  if (fs::create_directories(directory_, problem); problem)
    return refused_by_system(directory_, "cannot be made a directory", problem);
  if (auto stuck = remove_drafts())
    return stuck;
  auto failure = write_safetensors(file_of(step), tensors, metadata);
  if (failure && make_room(step, tensors))
    failure = write_safetensors(file_of(step), std::move(tensors), metadata);
  if (failure)
    return failure;
  return remove_old(step);
}

caf::error checkpoint_directory::remove_old(uint64_t step) const {
  TRY(all, steps());
  all->erase(std::ranges::upper_bound(*all, step), all->end());
  for (size_t whole = 0; !all->empty() && whole < std::max<size_t>(1, kept_); all->pop_back())
    whole += is_whole(all->back()) ? 1 : 0;
  std::error_code problem;
  for (auto each : *all) {
    whole_.erase(each);
    if (!fs::remove(file_of(each), problem) && problem)
      return refused_by_system(file_of(each), fmt::format("step {} is saved, but this one cannot be removed", step),
                               problem);
  }
  return caf::none;
}

caf::expected<safetensors_file> checkpoint_directory::read(uint64_t step) const {
  auto content = safetensors_file::read(file_of(step));
  if (!content)
    return content;
  const auto& said = content->metadata();
  if (!said.contains(digest_key))
    return malformed(fmt::format("{}: it has no {}, so it cannot be checked: another version or program wrote it",
                                 file_of(step).string(), digest_key));
  if (auto its = said.find(step_key); its != said.end() && its->second != std::to_string(step))
    return malformed(fmt::format("{} is of step {}, as it says itself: it must have that step's name again, or go",
                                 file_of(step).string(), its->second));
  return content;
}

caf::expected<std::optional<checkpoint_directory::checkpoint>> checkpoint_directory::newest() const {
  TRY(all, steps());
  std::vector<std::string> torn;
  for (auto step = all->rbegin(); step != all->rend(); ++step) {
    auto content = read(*step);
    if (content)
      return std::optional<checkpoint>{checkpoint{*step, std::move(*content), std::move(torn)}};
    torn.push_back(render(content.error()));
  }
  if (!torn.empty())
    return malformed(
      fmt::format("{}: no checkpoint can be used: {}. A copy of one would do, or a new run in another folder",
                  directory_.string(), fmt::join(torn, "; ")));
  return std::optional<checkpoint>{};
}

} // namespace ringmaster::training
