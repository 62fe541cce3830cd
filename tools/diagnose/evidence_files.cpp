#include "tools/diagnose/evidence_files.hpp"

#include "diagnosis/readers/file_evidence.hpp"
#include "diagnosis/readers/journal_records.hpp"
#include "messages/errc.hpp"
#include "planner/plans/parallel_for.hpp"
#include "runtime/journal/journal_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

namespace ringmaster {

namespace {

namespace fs = std::filesystem;
using namespace diagnosis;

constexpr size_t files_max = 200'000;
constexpr uintmax_t file_bytes_max = uintmax_t{2} << 30;

bool is_journal(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "CURRENT", ignored) && fs::is_regular_file(path / "IDENTITY", ignored);
}

caf::expected<std::string> content_of(const std::string& path) {
  std::error_code problem;
  auto bytes = fs::file_size(path, problem);
  if (problem)
    return make_error(errc::io_error, fmt::format("{}: {}", path, problem.message()));
  if (bytes > file_bytes_max)
    return make_error(errc::io_error,
                      fmt::format("{}: {} bytes; files of at most {} are read", path, bytes, file_bytes_max));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), std::fclose};
  if (!file)
    return make_error(errc::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string result(static_cast<size_t>(bytes), '\0');
  result.resize(std::fread(result.data(), 1, result.size(), file.get()));
  return result;
}

caf::expected<std::vector<std::string>> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  for (auto& path : paths) {
    std::error_code problem;
    auto status = fs::status(path, problem);
    if (!fs::exists(status))
      return make_error(errc::io_error, fmt::format("{}: {}", path, problem ? problem.message() : "no such file"));
    if (!fs::is_directory(status)) {
      result.push_back(path);
      continue;
    }
    for (auto at = fs::recursive_directory_iterator{path, problem};
         !problem && at != fs::recursive_directory_iterator{}; at.increment(problem)) {
      if (is_journal(at->path()))
        return invalid(fmt::format("{} is a journal within {}: give the journal alone", at->path().string(), path));
      if (at->is_regular_file() && result.size() < files_max)
        result.push_back(at->path().string());
    }
    if (problem)
      return make_error(errc::io_error, fmt::format("{}: {}", path, problem.message()));
  }
  std::ranges::sort(result);
  return result;
}

caf::expected<job_records> read_journal(const std::string& dir) {
  auto journal = journal_store::open_read_only(dir);
  if (!journal)
    return std::move(journal.error());
  auto records = (*journal)->read();
  if (!records)
    return std::move(records.error());
  return journal_job(*records);
}

} // namespace

caf::expected<job_records> read_job(const std::vector<std::string>& paths) {
  for (auto& path : paths)
    if (is_journal(path)) {
      if (paths.size() > 1)
        return invalid(fmt::format("{} is a journal, which is a job of its own: give it alone", path));
      return read_journal(path);
    }
  auto files = files_of(paths);
  if (!files)
    return std::move(files.error());
  std::vector<std::optional<file_evidence>> read(files->size());
  std::vector<caf::error> problems(files->size());
  training::parallel_for(files->size(), [&](size_t i) {
    auto content = content_of((*files)[i]);
    auto evidence = content ? read_evidence((*files)[i], *content) : caf::expected<file_evidence>{content.error()};
    if (evidence)
      read[i] = std::move(*evidence);
    else
      problems[i] = std::move(evidence.error());
  });
  std::vector<file_evidence> all;
  for (auto& each : read)
    if (each)
      all.push_back(std::move(*each));
  read.clear();
  auto first = std::ranges::find_if(problems, [](auto& x) { return static_cast<bool>(x); });
  if (all.empty() && first != problems.end())
    return std::move(*first);
  auto job = assemble(std::move(all));
  if (!job)
    return job;
  for (auto& problem : problems)
    if (problem)
      job->remarks.push_back("left out: " + render(problem));
  return job;
}

} // namespace ringmaster
