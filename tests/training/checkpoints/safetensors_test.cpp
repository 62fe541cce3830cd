#include "training/checkpoints/safetensors.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/checkpoints/tensor_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

const std::vector<float> weight{1, 2, 3, 4, 5, 6}, bias{-1, 0.5};
const std::vector<double> rate{0.125};
const std::vector<uint8_t> flags{7, 8, 9};

std::vector<stored_tensor> four_tensors() {
  return {{"flags", "U8", {3}, std::as_bytes(std::span{flags})},
          {"weight", "F32", {2, 3}, std::as_bytes(std::span{weight})},
          {"rate", "F64", {}, std::as_bytes(std::span{rate})},
          {"bias", "F32", {2}, std::as_bytes(std::span{bias})}};
}

/// A file of the format, as another program writes it: with nothing that is ours.
std::string foreign_file(const std::string& header, const std::string& data) {
  std::string result;
  for (int i = 0; i < 8; ++i)
    result += static_cast<char>(header.size() >> 8 * i);
  return result + header + data;
}

struct tensor_file {
  temporary_directory directory;
  std::filesystem::path file = directory.path() / "model.safetensors";

  void write_four() const { REQUIRE(!write_safetensors(file, four_tensors(), {{"step", "12"}, {"note", "\"a\"\n"}})); }

  void check_corrupt(const std::string& content, std::string_view sentence) const {
    write_content(file, content);
    auto read = safetensors_file::read(file);
    REQUIRE(!read);
    CHECK(code_of(read.error()) == errc::corrupt);
    CHECK_MESSAGE(contains(render(read.error()), sentence), render(read.error()));
    CHECK(contains(render(read.error()), file.string() + ": "));
  }
  void check_refused(const std::vector<stored_tensor>& tensors, std::string_view sentence) const {
    auto problem = write_safetensors(file, tensors);
    CHECK(code_of(problem) == errc::invalid_argument);
    CHECK_MESSAGE(contains(render(problem), sentence), render(problem));
    CHECK(!std::filesystem::exists(file));
  }
};

} // namespace

TEST_CASE_FIXTURE(tensor_file, "safetensors: what is written is read again, with types, shapes and texts") {
  write_four();
  auto read = safetensors_file::read(file);
  REQUIRE(read);
  REQUIRE(read->tensors().size() == 4);
  for (auto& written : four_tensors()) {
    auto* found = read->find(written.name);
    REQUIRE(found != nullptr);
    CHECK(found->type == written.type);
    CHECK(found->shape == written.shape);
    CHECK(std::ranges::equal(found->bytes, written.bytes));
  }
  CHECK(read->find("momentum") == nullptr);
  CHECK(read->metadata().at("step") == "12");
  CHECK(read->metadata().at("note") == "\"a\"\n");
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: the bytes of a file are those of the format, each tensor aligned") {
  write_four();
  const auto content = content_of(file);
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(content.size() == 8 + length + 8 + 24 + 8 + 3);
  const auto header = content.substr(8, length);
  CHECK(header.starts_with(R"({"__metadata__":{"ringmaster.xxh3":")"));
  CHECK(contains(header, R"("rate":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                         R"("weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                         R"("bias":{"dtype":"F32","shape":[2],"data_offsets":[32,40]},)"
                         R"("flags":{"dtype":"U8","shape":[3],"data_offsets":[40,43]}})"));
  CHECK(content.substr(8 + length + 40) == "\x07\x08\x09");
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: the digest of a file never changes") {
  const std::vector<float> values{1, 2};
  REQUIRE(!write_safetensors(file, {floats("x", values)}));
  auto read = safetensors_file::read(file);
  REQUIRE(read);
  CHECK(read->metadata().at("ringmaster.xxh3") == "aea598626bb7acb1");
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: a file that is cut is noticed, wherever it is") {
  write_four();
  const auto whole = content_of(file);
  for (size_t length = 0; length < whole.size(); ++length) {
    write_content(file, whole.substr(0, length));
    auto read = safetensors_file::read(file);
    REQUIRE(!read);
    CHECK(code_of(read.error()) == errc::corrupt);
  }
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: a byte that is another one is noticed, or loses the digest") {
  write_four();
  const auto whole = content_of(file);
  const auto key = whole.find(digest_key);
  for (size_t i = 0; i < whole.size(); ++i) {
    auto spoiled = whole;
    spoiled[i] ^= 4;
    write_content(file, spoiled);
    auto read = safetensors_file::read(file);
    if (i >= key && i < key + digest_key.size())
      CHECK((!read || !read->metadata().contains(digest_key)));
    else
      CHECK_MESSAGE(!read, "byte ", i);
  }
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: files of other programs are read without a digest") {
  write_content(file, foreign_file(R"({"b":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]},)"
                                   R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                   R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}}   )",
                                   "abcdefgh"));
  auto read = safetensors_file::read(file);
  REQUIRE(read);
  CHECK(read->tensors().size() == 3);
  CHECK(read->find("none")->bytes.empty());
  CHECK(read->find("b")->bytes.front() == std::byte{'e'});
  CHECK(read->metadata().empty());
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: what is wrong in a file is said with what would be right") {
  check_corrupt("1234567", "it has 7 bytes, and must begin with 8");
  check_corrupt(std::string(8, '\xff'), "its header must have 18446744073709551615 bytes, and the file ends after 8");
  check_corrupt(foreign_file("[]", ""), "the header: must be an object");
  check_corrupt(foreign_file("{", ""), "line 1, column 2: this is not JSON");
  auto one = [](std::string_view fields) { return foreign_file(R"({"a":{)" + std::string{fields} + "}}", "abcd"); };
  check_corrupt(one(R"("shape":[4],"data_offsets":[0,4])"), R"(a, "dtype": must be a text in quotes, and is missing)");
  check_corrupt(one(R"("dtype":"F128","shape":[4],"data_offsets":[0,4])"), "tensor a: its type F128 is not known");
  check_corrupt(one(R"("dtype":"U8","shape":[5],"data_offsets":[0,4])"),
                R"(a, "data_offsets": must be where the tensor's 5 bytes begin and end, and is [0,4])");
  check_corrupt(one(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"), "begin and end, and is [4,0]");
  check_corrupt(one(R"("dtype":"U8","shape":[4],"data_offsets":[0])"), "begin and end, and is [0]");
  check_corrupt(one(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), "must be a whole number");
  check_corrupt(one(R"("dtype":"U8","shape":[9007199254740991,9007199254740991],"data_offsets":[0,4])"),
                "or its shape is too large");
  check_corrupt(one(R"("dtype":"U8","shape":[3],"data_offsets":[0,3])"),
                "have 3 bytes of data together, and the file has 4");
  check_corrupt(one(R"("dtype":"U8","shape":[3],"data_offsets":[1,4])"), "tensor a must begin at byte 0 of the data");
  check_corrupt(foreign_file(R"({"__metadata__":{"a":1}})", ""),
                R"(__metadata__, "a": must be a text in quotes, and is 1)");
  check_corrupt(foreign_file(R"({"__metadata__":{"ringmaster.xxh3":"12"}})", ""), "must be 16 hexadecimal digits");
  check_corrupt(foreign_file(R"({"__metadata__":{"ringmaster.xxh3":"0123456789abcdef"}})", ""),
                "their digest must be 0123456789abcdef, and is ");
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: an invalid tensor is refused, and no file is written") {
  check_refused({{"a", "F31", {2}, std::as_bytes(std::span{bias})}}, "tensor a: its type F31 is not known");
  check_refused({{"a", "F32", {3}, std::as_bytes(std::span{bias})}}, "its shape has 12 bytes of F32, and there are 8");
  check_refused({floats("a", bias), floats("a", bias)}, "a tensor cannot be called \"a\"");
  check_refused({floats("__metadata__", bias)}, "a tensor cannot be called \"__metadata__\"");
  check_refused({floats("\xff", bias)}, "must be UTF-8");
  CHECK(code_of(write_safetensors(file, {}, {{"ringmaster.xxh3", "mine"}})) == errc::invalid_argument);
}

TEST_CASE_FIXTURE(tensor_file, "safetensors: a file that cannot be written whole leaves the one before, and no draft") {
  write_four();
  const auto before = content_of(file);
  const std::vector<float> large(100'000);
  caf::error problem;
  {
    file_size_limit disk{64 * 1024};
    problem = write_safetensors(file, {floats("large", large)});
  }
  CHECK(code_of(problem) == errc::no_space);
  CHECK_MESSAGE(contains(render(problem), "cannot be written: File too large after 65536 of 4001"), render(problem));
  CHECK(contains(render(problem), "what was there before stays"));
  CHECK(content_of(file) == before);
  CHECK(std::distance(std::filesystem::directory_iterator{directory.path()}, {}) == 1);
  auto nowhere = write_safetensors(directory.path() / "no" / "x.safetensors", {});
  CHECK(contains(render(nowhere), "x.safetensors: cannot be written: No such file or directory"));
  CHECK(contains(render(safetensors_file::read(directory.path()).error()), "it is no regular file"));
}
