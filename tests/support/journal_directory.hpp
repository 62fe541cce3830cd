#pragma once

#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/processes/child_process.hpp"
#include "tests/support/records.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::test {

inline caf::expected<std::unique_ptr<journal_store>> open_journal(const std::filesystem::path& dir) {
  journal_store::options opts;
  opts.dir = dir;
  return journal_store::open(opts);
}

/// What a process leaves that was killed when `records` or more were durable; returns how many it had reported.
inline uint64_t leave_killed(const std::filesystem::path& dir, uint64_t records) {
  child_process writer{{RINGMASTER_JOURNAL_WRITER, dir.string(), "100000"}};
  REQUIRE(writer.read_line() == "open");
  uint64_t reported = 0;
  while (reported < records)
    reported = std::stoull(writer.read_line());
  writer.kill();
  for (auto line = writer.read_line(); !line.empty(); line = writer.read_line())
    reported = std::stoull(line);
  return reported;
}

inline void leave_closed(const std::filesystem::path& dir) {
  auto journal = open_journal(dir);
  REQUIRE(journal);
  for (uint64_t sequence = 1; sequence <= 200; ++sequence)
    REQUIRE(!(*journal)->append(whole_operation(7, sequence)));
}

/// The largest file whose name has this beginning or extension.
inline std::filesystem::path find_file(const std::filesystem::path& dir, const std::string& what) {
  std::filesystem::path best;
  for (auto& entry : std::filesystem::directory_iterator{dir}) {
    auto name = entry.path().filename().string();
    if ((name.starts_with(what) || name.ends_with(what))
        && (best.empty() || entry.file_size() > std::filesystem::file_size(best)))
      best = entry.path();
  }
  REQUIRE(!best.empty());
  return best;
}

inline std::vector<std::pair<std::string, uint64_t>> listing(const std::filesystem::path& dir) {
  std::vector<std::pair<std::string, uint64_t>> files;
  for (auto& entry : std::filesystem::directory_iterator{dir})
    files.emplace_back(entry.path().filename(), entry.file_size());
  std::sort(files.begin(), files.end());
  return files;
}

/// The error of no matter which comes first, opening or reading.
inline caf::error open_and_read(const std::filesystem::path& dir, bool writing) {
  auto journal = writing ? open_journal(dir) : journal_store::open_read_only(dir);
  if (!journal)
    return std::move(journal.error());
  auto records = (*journal)->read();
  return records ? caf::none : std::move(records.error());
}

inline void check_corrupt(const std::filesystem::path& dir) {
  for (auto writing : {false, true}) {
    auto err = open_and_read(dir, writing);
    CAPTURE(writing);
    CHECK_MESSAGE(code_of(err) == errc::corrupt, render(err));
    CHECK(render(err).find(dir.string()) != std::string::npos);
  }
}

} // namespace ringmaster::test
