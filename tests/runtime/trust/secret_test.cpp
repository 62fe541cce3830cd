#include "runtime/trust/secret.hpp"
#include "runtime/trust/secret_directory.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <future>
#include <sys/stat.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

namespace {

constexpr auto owner_only = fs::perms::owner_read | fs::perms::owner_write;

fs::path file_with(const temporary_directory& dir, std::string_view text, fs::perms permissions = owner_only) {
  const auto result = dir.path() / "secret";
  std::ofstream{result} << text;
  fs::permissions(result, permissions);
  return result;
}

std::string complaint_of(const caf::expected<shared_secret>& x) {
  return x ? "" : render(x.error());
}

secret_directory in_directory(const temporary_directory& dir) {
  return secret_directory{{dir.path().string(), dir.path().string()}};
}

} // namespace

TEST_CASE("secret: a file's bytes, without the line breaks at its end") {
  temporary_directory dir;
  const std::string bytes = "0123456789 0123456789\n0123456789.";
  for (const auto* end : {"", "\n", "\r\n", "\n\n"}) {
    auto secret = shared_secret::read(file_with(dir, bytes + end));
    REQUIRE_MESSAGE(secret, complaint_of(secret));
    CHECK(secret->bytes() == bytes);
  }
  CHECK(shared_secret::read(file_with(dir, std::string(32, 'x'))));
  CHECK(shared_secret::read(file_with(dir, std::string(4096, 'x') + "\n")));
}

TEST_CASE("secret: a file that is no good is refused with what is wrong and what to do") {
  temporary_directory dir;
  const auto says = [&](const caf::expected<shared_secret>& x, errc code, const char* part) {
    REQUIRE(!x);
    CHECK(code_of(x.error()) == code);
    CAPTURE(complaint_of(x));
    CHECK(contains(complaint_of(x), part));
    CHECK(contains(complaint_of(x), dir.path().string()));
  };
  says(shared_secret::read(dir.path() / "none"), errc::io_error, "does not exist");
  says(shared_secret::read(dir.path()), errc::invalid_argument, "is a directory");
  says(shared_secret::read(file_with(dir, "")), errc::invalid_argument, "is empty: `openssl rand -hex 32`");
  says(shared_secret::read(file_with(dir, "\n")), errc::invalid_argument, "is empty");
  says(shared_secret::read(file_with(dir, std::string(31, 'x') + "\n")), errc::invalid_argument, "has 31 bytes");
  says(shared_secret::read(file_with(dir, std::string(4097, 'x'))), errc::invalid_argument, "more than 4096 bytes");
  for (const auto more : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write})
    says(shared_secret::read(file_with(dir, std::string(64, 'x'), owner_only | more)), errc::invalid_argument,
         "chmod 600");
  const auto pipe = dir.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  says(shared_secret::read(pipe), errc::invalid_argument, "is no regular file");
}

TEST_CASE("secret: a new file is for its owner only, whole, and replaces none") {
  temporary_directory dir;
  const auto file = dir.path() / "secret";
  const auto one = shared_secret::random(), other = shared_secret::random();
  CHECK(one.bytes().size() == 64);
  CHECK_FALSE(one == other);
  REQUIRE(!one.create(file));
  CHECK((fs::status(file).permissions() & fs::perms::mask) == owner_only);
  CHECK(*shared_secret::read(file) == one);
  CHECK(code_of(other.create(file)) == errc::in_use);
  CHECK(*shared_secret::read(file) == one);
  CHECK(std::distance(fs::directory_iterator{dir.path()}, {}) == 1);
  REQUIRE(!other.replace(file));
  CHECK(*shared_secret::read(file) == other);
  CHECK((fs::status(file).permissions() & fs::perms::mask) == owner_only);
  CHECK(code_of(one.create(dir.path() / "none" / "secret")) == errc::io_error);
}

TEST_CASE("secret: its text is one line, whatever its bytes, and says the same") {
  std::string bytes;
  for (int i = 0; i < 256; ++i)
    bytes += static_cast<char>(i);
  const auto secret = *shared_secret::of(bytes, "it");
  CHECK(secret.text().find('\n') == std::string::npos);
  CHECK(*shared_secret::parse(secret.text(), "it") == secret);
  const auto plain = std::string(40, 'p');
  CHECK(shared_secret::parse(plain, "it")->bytes() == plain);
  CHECK(complaint_of(shared_secret::parse("hex:0g", "THE_VARIABLE")).starts_with("THE_VARIABLE begins with"));
  CHECK(complaint_of(shared_secret::parse("hex:00", "it")) != "");
  CHECK(complaint_of(shared_secret::parse("", "it")).starts_with("it is empty"));
}

TEST_CASE("secret directory: what one process makes for a port, others of the user find by it") {
  temporary_directory dir;
  const auto directory = in_directory(dir);
  CHECK(secret_directory::name_for(7077) == "7077.secret");
  const auto name = dir.path().filename().string() + ".secret"; // that of a port may be in /tmp
  auto none = directory.find(name);
  REQUIRE(!none);
  CHECK(code_of(none.error()) == errc::io_error);
  CHECK(contains(render(none.error()), (dir.path() / "ringmaster" / name).string()));
  CHECK(contains(render(none.error()), fmt::format("/tmp/ringmaster-{}/{}", ::geteuid(), name)));
  auto made = directory.find_or_make(name);
  REQUIRE(made);
  CHECK((fs::status(dir.path() / "ringmaster").permissions() & fs::perms::mask) == fs::perms::owner_all);
  CHECK(directory.find(name)->secret == made->secret);
  CHECK(directory.find_or_make(name)->secret == made->secret);
  CHECK_FALSE(directory.find("other-" + name));
  const auto other = shared_secret::random();
  CHECK(*directory.store(name, other) == made->file);
  CHECK(directory.find(name)->secret == other);
}

TEST_CASE("secret directory: several that make one at once have the same") {
  temporary_directory dir;
  std::vector<std::future<shared_secret>> makers;
  for (int i = 0; i < 8; ++i)
    makers.push_back(std::async(std::launch::async, [&] { return in_directory(dir).find_or_make("x")->secret; }));
  const auto first = makers.front().get();
  for (size_t i = 1; i < makers.size(); ++i)
    CHECK(makers[i].get() == first);
}

TEST_CASE("secret directory: one to which others have access is not used") {
  temporary_directory dir;
  const auto place = dir.path() / "ringmaster";
  REQUIRE(in_directory(dir).find_or_make("x"));
  fs::permissions(place, fs::perms::others_exec, fs::perm_options::add);
  auto found = in_directory(dir).find("x");
  REQUIRE(!found);
  CHECK(contains(render(found.error()), "chmod 700"));
  fs::remove_all(place);
  temporary_directory elsewhere;
  fs::create_directory_symlink(elsewhere.path(), place);
  std::ofstream{elsewhere.path() / "x"} << std::string(64, 'x');
  CHECK_FALSE(in_directory(dir).find("x"));
}

TEST_CASE("secret: beside a journal it is made once, with its directory") {
  temporary_directory dir;
  const auto file = dir.path() / "journal" / "secret";
  auto made = find_or_make_secret(file);
  REQUIRE(made);
  CHECK((fs::status(file.parent_path()).permissions() & fs::perms::mask) == fs::perms::owner_all);
  CHECK(*find_or_make_secret(file) == *made);
}
