#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/data/small_images.hpp"
#include "training/data/data_folder.hpp"
#include "training/data/text_folder.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

struct texts : image_folder {
  caf::expected<opened_data> open(const text_options& opts) const { return open_data_folder(path(), opts); }

  void check_refused(const text_options& opts, errc code, std::string_view sentence) const {
    auto opened = open(opts);
    REQUIRE(!opened);
    CHECK(code_of(opened.error()) == code);
    CHECK_MESSAGE(contains(render(opened.error()), sentence), render(opened.error()));
  }
};

std::set<std::string> names_of(const std::vector<text_file>& files) {
  std::set<std::string> result;
  for (auto& file : files)
    result.insert(file.name);
  return result;
}

/// What a sample of bytes is, as text: its inputs, and its labels.
std::pair<std::string, std::string> window_of(const data_set& x, uint32_t sample) {
  std::vector<float> inputs(x.shape().elements());
  std::vector<uint32_t> labels(x.labels_each());
  REQUIRE(!x.fill(std::span{&sample, 1}, inputs, labels));
  return {{inputs.begin(), inputs.end()}, {labels.begin(), labels.end()}};
}

/// The file that `a.txt` and `b.txt` do not leave to training.
std::string other_of(const byte_windows& x) {
  return x.files().front().name == "a.txt" ? "b.txt" : "a.txt";
}

} // namespace

TEST_CASE_FIXTURE(texts, "text data: what is not taken is named, but for hidden names and what is built") {
  namespace fs = std::filesystem;
  write("a.txt", "abcdefgh");
  write("b.txt", "abcdefgh");
  for (auto* name : {"deep", "deep/build", ".hidden"})
    fs::create_directory(path() / name);
  write("deep/c.txt", "abcdefgh");
  write("deep/build/made.txt", "abcdefgh");
  write(".hidden/d.txt", "abcdefgh");
  fs::create_symlink(path() / "a.txt", path() / "deep" / "link.txt");
  fs::create_directory_symlink(path() / "deep", path() / "round");
  fs::create_symlink("nowhere", path() / "deep" / "gone");
  write("odd\n\x1b[31m", std::string(1, '\0'));
  auto found = read_text_folder(path(), 1, 0.5);
  REQUIRE(found);
  auto names = names_of(found->training);
  names.merge(names_of(found->held_out));
  CHECK(names == std::set<std::string>{"a.txt", "b.txt", "deep/c.txt", "deep/link.txt"});
  CHECK(found->skipped
        == std::vector<std::string>{"deep/gone: it is no file, or a link to none",
                                    "round: links to folders are not followed",
                                    "odd\\x0a\\x1b[31m: it is no text (UTF-8)"});
}

TEST_CASE_FIXTURE(texts, "text data: a sample is a window of a file, and its labels the bytes after each of it") {
  write("a.txt", "abcdefgh");
  write("b.txt", "abcdefgh");
  auto opened = open({.window = 3});
  REQUIRE(opened);
  auto& x = *opened->training;
  CHECK(x.name() == "bytes");
  CHECK(x.shape().text() == "1x1x3");
  CHECK(x.label_count() == 256);
  REQUIRE(x.count() == 2); // of three, the last would lack a byte to predict
  CHECK(window_of(x, 0) == std::pair<std::string, std::string>{"abc", "bcd"});
  CHECK(window_of(x, 1) == std::pair<std::string, std::string>{"def", "efg"});
  auto close = open({.window = 3, .stride = 1});
  REQUIRE(close);
  REQUIRE(close->training->count() == 5);
  CHECK(window_of(*close->training, 4) == std::pair<std::string, std::string>{"efg", "fgh"});
}

TEST_CASE_FIXTURE(texts, "text data: no window goes from one file into the next") {
  std::vector<text_file> files;
  for (auto* content : {"abcd", "ef", "ghijklm"}) {
    write(content, content);
    auto read = file_bytes::of(path() / content);
    REQUIRE(read);
    files.push_back({content, std::make_shared<const file_bytes>(std::move(*read))});
  }
  auto windows = byte_windows::over(files, 2, 2);
  REQUIRE(windows);
  std::string all;
  for (uint32_t i = 0; i < (*windows)->count(); ++i)
    all += window_of(**windows, i).second + " ";
  CHECK(all == "bc hi jk lm ");
}

TEST_CASE_FIXTURE(texts, "text data: bytes above 127 are themselves") {
  write("a.txt", "\xc3\xa9\xc3\xa9");
  write("b.txt", "\xc3\xa9\xc3\xa9");
  auto opened = open({.window = 2});
  REQUIRE(opened);
  CHECK(window_of(*opened->held_out, 0) == std::pair<std::string, std::string>{"\xc3\xa9", "\xa9\xc3"});
}

TEST_CASE_FIXTURE(texts, "text data: which files are held out follows from their names and the seed alone") {
  std::filesystem::create_directory(path() / "below");
  for (int i = 0; i < 200; ++i)
    write("below/" + std::to_string(i), "text");
  auto first = read_text_folder(path(), 1, 0.1), other = read_text_folder(path(), 2, 0.1);
  REQUIRE(first);
  REQUIRE(other);
  const auto held_out = names_of(first->held_out);
  CHECK(held_out.size() > 8);
  CHECK(held_out.size() < 40);
  CHECK(held_out != names_of(other->held_out));
  for (auto& name : names_of(first->training))
    CHECK(!is_held_out(name, 1, 0.1));
  for (auto& name : held_out)
    CHECK(is_held_out(name, 1, 0.1));
  write("more", "text");
  auto again = read_text_folder(path(), 1, 0.1);
  REQUIRE(again);
  auto now = names_of(again->held_out);
  now.erase("more");
  CHECK(now == held_out);
}

TEST_CASE("text data: the rule of what is held out is the same on every machine") {
  std::string taken;
  for (int i = 0; i < 40; ++i)
    taken += is_held_out("chapter" + std::to_string(i) + ".txt", 1234, 0.25) ? '1' : '0';
  CHECK(taken == "0000001000100111100000100000101100000000");
}

TEST_CASE_FIXTURE(texts, "text data: of two files one is held out, whatever the part") {
  write("a.txt", "some text");
  write("b.txt", "some text");
  for (auto part : {0.001, 0.5, 0.999}) {
    auto opened = open({.window = 4, .held_out_part = part});
    REQUIRE(opened);
    auto& training = dynamic_cast<const byte_windows&>(*opened->training);
    auto& held_out = dynamic_cast<const byte_windows&>(*opened->held_out);
    REQUIRE(training.files().size() == 1);
    CHECK(held_out.files().front().name == other_of(training));
  }
}

TEST_CASE_FIXTURE(texts, "text data: what is no text is left out and named, what is hidden is not looked at") {
  write("a.txt", "some text");
  write("b.txt", "some text");
  write("image.png", std::string{"\x89PNG\0", 5});
  write("latin.txt", "caf\xe9");
  write("nothing", "");
  write("short", "ab");
  write(".hidden", std::string{"\0", 1});
  auto opened = open({.window = 4});
  REQUIRE(opened);
  CHECK(opened->remarks
        == std::vector<std::string>{"image.png: it is no text (UTF-8)", "latin.txt: it is no text (UTF-8)",
                                    "nothing: it is empty",
                                    "short: it has 2 bytes, less than a window of 4 and one more"});
}

TEST_CASE_FIXTURE(texts, "text data: a folder with nothing known in it says what is looked for") {
  write("image.png", std::string{"\x89PNG\0", 5});
  for (auto* part : {"there must be two files of text at least, since some are held out, and there is none",
                     "train-images-idx3-ubyte, train-labels-idx1-ubyte", "(MNIST)",
                     "data_batch_1.bin to data_batch_5.bin", "(CIFAR-10)", "or else files of text"})
    check_refused({}, errc::invalid_argument, part);
  write("only.txt", "text");
  check_refused({}, errc::invalid_argument, "and there is only only.txt; left out: image.png: it is no text (UTF-8)");
}

TEST_CASE_FIXTURE(texts, "text data: a file with another byte or another name, or another window, is other data") {
  auto digest = [&](const text_options& opts) {
    auto opened = open(opts);
    REQUIRE(opened);
    return std::pair{opened->training->digest(), opened->held_out->digest()};
  };
  for (auto* name : {"a.txt", "b.txt", "c.txt"})
    write(name, "some text that has many windows, of which one has another byte");
  const auto before = digest({.window = 4});
  CHECK(digest({.window = 4}) == before);
  CHECK(digest({.window = 5}).first != before.first);
  CHECK(digest({.window = 4, .stride = 3}).first != before.first);
  for (auto* name : {"a.txt", "b.txt", "c.txt"}) {
    write(name, "some text that has many windows, of which one has another bite");
    CHECK(digest({.window = 4}) != before);
    write(name, "some text that has many windows, of which one has another byte");
    CHECK(digest({.window = 4}) == before);
  }
}

TEST_CASE_FIXTURE(texts, "text data: invalid requests are refused with a reason") {
  write("a.txt", "some text");
  write("b.txt", "some text");
  check_refused({.window = 0}, errc::invalid_argument, "must be 1 to 1048576 bytes, and one is 0");
  check_refused({.window = 9}, errc::invalid_argument, "no file has a window of 9 bytes and one more to predict");
  check_refused({.held_out_part = 0}, errc::invalid_argument, "must be between 0 and 1, and is 0");
  auto nowhere = open_data_folder(path() / "nowhere");
  REQUIRE(!nowhere);
  CHECK(contains(render(nowhere.error()), "nowhere: it is no folder"));
  CHECK(contains(render(open_data_folder(path() / "a.txt").error()), "a.txt: it is no folder"));
}

TEST_CASE_FIXTURE(texts, "text data: a byte order mark is no part of a text, and UTF-16 is named") {
  write("a.txt", "\xef\xbb\xbf"
                 "abcdefgh");
  write("b.txt", "abcdefgh");
  write("wide.txt", std::string{"\xff\xfe"
                                "a\0b\0",
                                6});
  write("mark.txt", "\xef\xbb\xbf");
  auto found = read_text_folder(path(), 1, 0.5);
  REQUIRE(found);
  for (auto* side : {&found->training, &found->held_out})
    for (auto& file : *side)
      CHECK(std::string{reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()} == "abcdefgh");
  CHECK(found->training.size() + found->held_out.size() == 2);
  CHECK(found->skipped
        == std::vector<std::string>{
          "mark.txt: it is empty",
          "wide.txt: it is in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it"});
}
