#include "runtime/memory/memory_directory.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

namespace {

std::string refusal(const fs::path& configured, uint64_t bytes) {
  auto made = memory_directory::open(configured, bytes);
  REQUIRE(!made);
  CHECK(code_of(made.error()) == errc::io_error);
  return render(made.error());
}

/// What a process leaves in the directory of directories when it is killed, and holds as long as it lives.
struct left_behind {
  left_behind(const fs::path& base, const std::string& name, bool lives, bool has_lock = true)
    : path(base / ("ringmaster-memory-test-" + std::to_string(::getpid()) + name)) {
    fs::create_directories(path);
    std::ofstream{path / "device-1"} << "bytes";
    if (!has_lock)
      return;
    std::ofstream{path / "lock"};
    if (lives) {
      lock = ::open((path / "lock").c_str(), O_RDWR | O_CLOEXEC);
      REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
    }
  }

  ~left_behind() {
    if (lock >= 0)
      ::close(lock);
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }

  fs::path path;
  int lock = -1;
};

} // namespace

TEST_CASE("memory directory: a fresh one is there as long as its object, wherever that is moved to") {
  fs::path path;
  {
    auto made = memory_directory::open({}, 1 << 20);
    REQUIRE_MESSAGE(made, render(made.error()));
    path = made->path();
    CHECK(fs::is_directory(path));
    std::ofstream{path / "device-1"} << "bytes";
    std::optional<memory_directory> moved{std::move(*made)};
    CHECK(moved->path() == path);
    auto other = memory_directory::open({}, 1 << 20);
    REQUIRE(other);
    CHECK(other->path() != path);
    CHECK(fs::exists(path / "device-1")); // another one's making is no reason to go
    *moved = std::move(*other);
    CHECK(moved->path() != path);
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("memory directory: what killed processes left goes when the next one is made, and nothing else") {
  auto made = memory_directory::open({}, 0);
  REQUIRE(made);
  const auto base = made->path().parent_path();
  left_behind dead{base, "dead", false}, living{base, "living", true}, making{base, "making", false, false};
  left_behind unnamed{base, "unnamed", false, false}, unlocked{base, "unlocked", false, false};
  std::ofstream{unlocked.path / "lock.new"};
  for (auto* each : {&unnamed, &unlocked}) // killed as they were made, a while ago
    fs::last_write_time(each->path, fs::file_time_type::clock::now() - std::chrono::minutes{2});
  auto next = memory_directory::open({}, 0);
  REQUIRE(next);
  CHECK_FALSE(fs::exists(dead.path));
  CHECK_FALSE(fs::exists(unnamed.path));
  CHECK_FALSE(fs::exists(unlocked.path));
  CHECK(fs::exists(living.path / "device-1"));
  CHECK(fs::exists(making.path / "device-1")); // its lock file comes with the lock
  CHECK(fs::is_directory(made->path()));
}

TEST_CASE("memory directory: within a configured one each process has its own, and sweeps what others have left") {
  test::temporary_directory dir;
  left_behind dead{dir.path(), "dead", false}, living{dir.path(), "living", true};
  std::ofstream{dir.path() / "other-file"} << "bytes";
  fs::path paths[2];
  {
    auto one = memory_directory::open(dir.path(), 1 << 20), other = memory_directory::open(dir.path(), 1 << 20);
    REQUIRE_MESSAGE(one, render(one.error()));
    REQUIRE_MESSAGE(other, render(other.error()));
    paths[0] = one->path(), paths[1] = other->path();
    CHECK(paths[0] != paths[1]);
    for (auto& path : paths) {
      CHECK(path.parent_path() == dir.path());
      std::ofstream{path / "device-1.memory"} << "bytes";
    }
    CHECK_FALSE(fs::exists(dead.path));
    CHECK(fs::exists(living.path / "device-1"));
  }
  for (auto& path : paths)
    CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(dir.path() / "other-file"));
}

TEST_CASE("memory directory: one that someone has removed is made again, and is in use as before") {
  test::temporary_directory dir;
  auto ours = memory_directory::open(dir.path(), 0);
  REQUIRE(ours);
  const auto kept = [&] {
    auto made = ours->keep();
    REQUIRE_MESSAGE(made, render(made.error()));
    return *made;
  };
  CHECK_FALSE(kept());
  const auto is_swept = [&] { // by the next process, were it that of a killed one; a while later
    fs::last_write_time(ours->path(), fs::file_time_type::clock::now() - std::chrono::minutes{2});
    REQUIRE(memory_directory::open(dir.path(), 0));
    return !fs::exists(ours->path());
  };
  SUBCASE("with all that is in it") {
    fs::remove_all(ours->path());
  }
  SUBCASE("but for its lock") {
    fs::remove(ours->path() / "lock");
  }
  CHECK(kept());
  CHECK_FALSE(kept());
  CHECK_FALSE(is_swept());
}

TEST_CASE("memory directory: what was configured and is gone is not made in its place, nor taken from someone") {
  test::temporary_directory dir;
  const auto base = dir.path() / "base";
  fs::create_directories(base);
  auto ours = memory_directory::open(base, 0);
  REQUIRE(ours);
  fs::remove_all(base);
  auto missing = ours->keep();
  REQUIRE(!missing);
  CHECK(code_of(missing.error()) == errc::io_error);
  CHECK(contains(render(missing.error()), "device.memory-dir is " + base.string() + ": it does not exist"));
  fs::create_directories(base);
  fs::create_directory_symlink(dir.path(), ours->path());
  auto taken = ours->keep();
  REQUIRE(!taken);
  CHECK(contains(render(taken.error()), "cannot make the directory again for device memory: File exists"));
  fs::remove(ours->path());
  auto again = ours->keep();
  REQUIRE(again);
  CHECK(*again);
}

TEST_CASE("memory directory: a configured one that cannot be used is refused, and not made") {
  test::temporary_directory dir;
  const auto missing = dir.path() / "of" / "devices";
  CHECK(refusal(missing, 0)
        == "device.memory-dir is " + missing.string()
             + ": it does not exist; name a directory that is there, or leave it empty for /dev/shm");
  CHECK_FALSE(fs::exists(dir.path() / "of"));
  std::ofstream{dir.path() / "file"};
  CHECK(contains(refusal(dir.path() / "file", 0), "it is no directory"));
  CHECK(contains(refusal(dir.path() / "file" / "below", 0), "Not a directory"));
}

TEST_CASE("memory directory: more than there is room for is refused, with the room and what to do") {
  test::temporary_directory dir;
  uint64_t most = fs::space(dir.path()).available;
  for (auto base : {"/dev/shm", "/tmp"})
    if (fs::is_directory(base))
      most = std::max<uint64_t>(most, fs::space(base).available);
  if (auto base = std::getenv("TMPDIR"); base != nullptr && fs::is_directory(base))
    most = std::max<uint64_t>(most, fs::space(base).available);
  for (auto bytes : {most + most / 2, uint64_t{1} << 62}) {
    CAPTURE(bytes);
    auto text = refusal(dir.path(), bytes);
    CHECK(contains(text, " in " + dir.path().string() + "; fewer devices (device.count)"));
    text = refusal({}, bytes);
    CHECK(contains(text, " in /tmp"));
    CHECK(contains(text, "device.memory-dir names another directory"));
  }
}
