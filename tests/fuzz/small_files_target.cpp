// Small files: the secret of a cluster, the mark of a journal, the configuration that `ringmaster tune` changes.
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/durable_mark.hpp"
#include "runtime/text/ini_section.hpp"
#include "runtime/text/utf8.hpp"
#include "runtime/trust/secret.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"

namespace ringmaster::fuzz {

namespace {

void read_small_files(std::string_view bytes) {
  static const test::temporary_directory dir;
  test::write_content(dir.path() / durable_mark::file_name, std::string{bytes});
  (void)durable_mark::read(dir.path());
  const auto secret_file = dir.path() / "secret";
  test::write_content(secret_file, std::string{bytes});
  std::filesystem::permissions(secret_file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  if (const auto secret = shared_secret::read(secret_file)) {
    const auto again = shared_secret::parse(secret->text(), "the corpus");
    ensure(again && *again == *secret, "a secret is the same after it was written as text");
  }
  (void)shared_secret::parse(bytes, "the corpus");
  (void)replace_section(bytes, "tuned", "[tuned]\nkey=1\n");
  ensure(is_utf8(as_utf8(bytes)) && is_utf8(printable(bytes)), "repaired text is text");
}

const fuzz_target fuzz_small_files{"small_files", read_small_files};

} // namespace

} // namespace ringmaster::fuzz
