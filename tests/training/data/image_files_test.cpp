#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/data/small_images.hpp"
#include "training/data/data_folder.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

void check_image_error(const image_folder& folder, errc code, std::string_view sentence) {
  auto opened = open_data_folder(folder.path());
  REQUIRE(!opened);
  CHECK(code_of(opened.error()) == code);
  CHECK_MESSAGE(contains(render(opened.error()), sentence), render(opened.error()));
}

/// Whole files, of which a test spoils one.
struct idx_folder : image_folder {
  idx_folder() { write_idx(12, 4); }
};
struct cifar_folder : image_folder {
  cifar_folder() { write_cifar(); }
};

} // namespace

TEST_CASE_FIXTURE(idx_folder, "image files: IDX images come as they are stored, divided by 255, in any order") {
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  auto& x = *opened->training;
  CHECK(x.name() == "IDX images");
  CHECK(x.count() == 12);
  CHECK(opened->held_out->count() == 4);
  CHECK(x.shape().text() == "1x2x3");
  CHECK(x.label_count() == 10);
  std::vector<float> inputs(12);
  std::vector<uint32_t> labels(2), wanted{11, 2};
  REQUIRE(!x.fill(wanted, inputs, labels));
  CHECK(labels == std::vector<uint32_t>{1, 2});
  CHECK(inputs[0] == 110.f / 255);
  CHECK(inputs[11] == 25.f / 255);
}

TEST_CASE_FIXTURE(idx_folder, "image files: IDX images have as many labels as the largest of all their labels says") {
  overwrite("train-labels-idx1-ubyte", 8 + 5, "\x2d");
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  CHECK(opened->training->label_count() == 46);
  CHECK(opened->held_out->label_count() == 46); // a model has one number of outputs
  overwrite("t10k-labels-idx1-ubyte", 8 + 1, "\x3d");
  opened = open_data_folder(path());
  REQUIRE(opened);
  CHECK(opened->training->label_count() == 62);
  overwrite("t10k-labels-idx1-ubyte", 8 + 1, "\xff");
  opened = open_data_folder(path());
  REQUIRE(opened);
  CHECK(opened->held_out->label_count() == 256);
  std::vector<uint32_t> label(1), sample{1};
  REQUIRE(!opened->held_out->fill(sample, {}, label));
  CHECK(label[0] == 255);
}

TEST_CASE_FIXTURE(image_folder, "image files: IDX images are found by the names that EMNIST's files have") {
  write_idx(12, 4);
  for (auto [from, to] : {std::pair{"train-images-idx3-ubyte", "emnist-letters-train-images-idx3-ubyte"},
                          {"train-labels-idx1-ubyte", "emnist-letters-train-labels-idx1-ubyte"},
                          {"t10k-images-idx3-ubyte", "emnist-letters-test-images-idx3-ubyte"},
                          {"t10k-labels-idx1-ubyte", "emnist-letters-test-labels-idx1-ubyte"}})
    std::filesystem::rename(path() / from, path() / to);
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  CHECK(opened->training->count() == 12);
  CHECK(opened->held_out->count() == 4);
  // Of several sets in a folder one is named.
  for (const std::string name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "test-images-idx3-ubyte", "test-labels-idx1-ubyte"})
    std::filesystem::copy_file(path() / ("emnist-letters-" + name), path() / ("emnist-digits-" + name));
  overwrite("emnist-digits-train-labels-idx1-ubyte", 8, "\x20");
  check_image_error(*this, errc::invalid_argument,
                    "there are 2 sets of images: name one, " + (path() / "emnist-digits").string() + " or "
                      + (path() / "emnist-letters").string());
  opened = open_image_folder(path() / "emnist-digits");
  REQUIRE(opened);
  CHECK(opened->training->label_count() == 33);
  opened = open_image_folder(path() / "emnist-letters");
  REQUIRE(opened);
  CHECK(opened->training->label_count() == 10);
  CHECK(!open_image_folder(path() / "emnist"));
}

TEST_CASE_FIXTURE(idx_folder, "image files: data that differ in one byte anywhere have another digest") {
  auto digests = [&](const image_folder& of) {
    auto opened = open_data_folder(of.path());
    REQUIRE(opened);
    return std::pair{opened->training->digest(), opened->held_out->digest()};
  };
  const auto before = digests(*this);
  CHECK(digests(*this) == before);
  for (std::streamoff pixel = 0; pixel < 12 * 6; ++pixel) {
    idx_folder other;
    other.overwrite("train-images-idx3-ubyte", 16 + pixel, "\xfe");
    CHECK(digests(other).first != before.first);
    CHECK(digests(other).second == before.second);
  }
  for (std::streamoff sample = 0; sample < 12; ++sample) {
    idx_folder other;
    other.overwrite("train-labels-idx1-ubyte", 8 + sample, sample == 3 ? "\x04" : "\x03");
    CHECK(digests(other).first != before.first);
  }
  idx_folder other;
  other.overwrite("t10k-images-idx3-ubyte", 16 + 5, "\xfe");
  CHECK(digests(other).first == before.first);
  CHECK(digests(other).second != before.second);
}

TEST_CASE_FIXTURE(idx_folder, "image files: IDX images are found by names with a dot, too, as they are often shared") {
  for (const std::string name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    auto dotted = name;
    dotted[name.find("-idx")] = '.';
    std::filesystem::rename(path() / name, path() / dotted);
    auto opened = open_data_folder(path()); // the others have the one or the other
    REQUIRE(opened);
    CHECK(opened->training->count() == 12);
  }
  std::filesystem::remove(path() / "train-labels.idx1-ubyte");
  check_image_error(*this, errc::io_error, "train-labels-idx1-ubyte");
}

TEST_CASE_FIXTURE(idx_folder, "image files: a span of another size and a sample that is not there are refused") {
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  std::vector<float> inputs(6, -1);
  std::vector<uint32_t> labels(1), one{3}, two{3, 4}, beyond{12};
  CHECK(code_of(opened->training->fill(two, inputs, labels)) == errc::size_mismatch);
  auto problem = opened->training->fill(beyond, inputs, labels);
  CHECK(code_of(problem) == errc::out_of_range);
  CHECK(contains(render(problem), "no sample 12 of IDX images, which has 12"));
  CHECK(inputs.front() == -1);
  CHECK(!opened->training->fill(one, inputs, labels));
}

TEST_CASE_FIXTURE(idx_folder, "image files: what is wrong in IDX files is named by file and byte") {
  SUBCASE("magic") {
    overwrite("train-images-idx3-ubyte", 3, "\x04");
    check_image_error(*this, errc::corrupt,
                      "train-images-idx3-ubyte, byte 0: the magic number must be 0x00000803, and is 0x00000804");
  }
  SUBCASE("cut in the header") {
    cut("t10k-labels-idx1-ubyte", 7);
    check_image_error(*this, errc::corrupt, "t10k-labels-idx1-ubyte, byte 7: the file ends within its header");
  }
  SUBCASE("cut in an image") {
    cut("train-images-idx3-ubyte", 16 + 12 * 6 - 1);
    check_image_error(*this, errc::corrupt,
                      "byte 87: the file ends here, and by its header must do so at byte 88: 16 of header, 12 x 6");
  }
  SUBCASE("too long by whole images") {
    overwrite("train-images-idx3-ubyte", 16 + 12 * 6, "sixsix");
    check_image_error(*this, errc::corrupt, "byte 94: the file ends here");
  }
  SUBCASE("no image") {
    overwrite("train-images-idx3-ubyte", 4, big_endian(0));
    check_image_error(*this, errc::corrupt, "byte 4: the count must be 1 or more, and is 0");
  }
  SUBCASE("a side that cannot be") {
    overwrite("train-images-idx3-ubyte", 12, big_endian(0xffffffff));
    check_image_error(*this, errc::corrupt, "byte 12: the image's side must be 1 to 65536, and is 4294967295");
  }
  SUBCASE("fewer labels than images") {
    write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + "\x01\x02");
    check_image_error(*this, errc::corrupt, "train-labels-idx1-ubyte, byte 4: there must be 12 labels");
  }
  SUBCASE("more labels than images") {
    write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(13) + std::string(13, '\x01'));
    check_image_error(*this, errc::corrupt, "train-labels-idx1-ubyte, byte 4: there must be 12 labels");
  }
  SUBCASE("other sides where they are held out") {
    overwrite("t10k-images-idx3-ubyte", 8, big_endian(3) + big_endian(2));
    check_image_error(*this, errc::corrupt, "t10k-images-idx3-ubyte, byte 8: images must be 1x2x3");
  }
  SUBCASE("not there") {
    std::filesystem::remove(path() / "t10k-labels-idx1-ubyte");
    check_image_error(*this, errc::io_error, "t10k-labels-idx1-ubyte: cannot be read: No such file");
    write("t10k-labels-idx1-ubyte.gz", "packed");
    check_image_error(*this, errc::io_error, "t10k-labels-idx1-ubyte.gz: it is packed; `gunzip");
  }
}

TEST_CASE_FIXTURE(cifar_folder, "image files: CIFAR-10's batches are one behind the other") {
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  auto& x = *opened->training;
  CHECK(x.name() == "CIFAR-10");
  CHECK(x.count() == 10);
  CHECK(x.shape().text() == "3x32x32");
  std::vector<float> inputs(3 * 3072);
  std::vector<uint32_t> labels(3), wanted{4, 9, 8};
  REQUIRE(!x.fill(wanted, inputs, labels));
  CHECK(labels == std::vector<uint32_t>{3, 9, 5});
  CHECK(inputs[0] == 0);
  CHECK(inputs[2 * 3072 + 1000] == static_cast<float>(1000 % 251) / 255);
  std::vector<uint32_t> first{0};
  REQUIRE(!opened->held_out->fill(first, std::span{inputs}.first(3072), std::span{labels}.first(1)));
  CHECK(labels[0] == 6);
}

TEST_CASE_FIXTURE(cifar_folder, "image files: what is wrong in CIFAR-10's files is named by file and byte") {
  SUBCASE("cut") {
    cut("data_batch_2.bin", 3073 + 100);
    check_image_error(*this, errc::corrupt, "data_batch_2.bin, byte 3173: the file ends within record 1");
  }
  SUBCASE("empty") {
    cut("test_batch.bin", 0);
    check_image_error(*this, errc::corrupt, "test_batch.bin, byte 0: the file ends within record 0");
  }
  SUBCASE("label") {
    overwrite("data_batch_5.bin", 3073, "\x63");
    check_image_error(
      *this, errc::corrupt,
      "data_batch_5.bin, byte 3073: the label of sample 1 must be 0 to 9, and is 99: CIFAR-10 has 10 classes");
  }
  SUBCASE("not there") {
    std::filesystem::remove(path() / "data_batch_3.bin");
    check_image_error(*this, errc::io_error, "data_batch_3.bin: cannot be read: No such file");
  }
}

TEST_CASE_FIXTURE(image_folder, "image files: CIFAR-100's records have two labels, of which the finer one counts") {
  std::string records;
  for (int i = 0; i < 3; ++i)
    records += std::string{static_cast<char>(i), static_cast<char>(97 + i)} + std::string(3072, static_cast<char>(i));
  write("train.bin", records);
  write("test.bin", records.substr(0, 3074));
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  CHECK(opened->training->name() == "CIFAR-100");
  CHECK(opened->training->count() == 3);
  CHECK(opened->held_out->count() == 1);
  CHECK(opened->held_out->label_count() == 100);
  std::vector<float> input(3072);
  std::vector<uint32_t> label(1), sample{2};
  REQUIRE(!opened->training->fill(sample, input, label));
  CHECK(label[0] == 99);
  CHECK(input[0] == 2.f / 255);
  CHECK(input[3071] == 2.f / 255);
  overwrite("train.bin", 3074 + 1, "\x64");
  check_image_error(*this, errc::corrupt, "train.bin, byte 3075: the label of sample 1 must be 0 to 99, and is 100");
  cut("test.bin", 3073);
  overwrite("train.bin", 3074 + 1, "\x63");
  check_image_error(*this, errc::corrupt, "test.bin, byte 3073: the file ends within record 0: each is two labels");
}

TEST_CASE_FIXTURE(image_folder, "image files: the folder within that has the files is taken") {
  auto found_in = [&] {
    auto opened = open_image_folder(path());
    REQUIRE_MESSAGE(opened.engaged(), render(opened.error()));
    return opened->found_in;
  };
  const auto raw = path() / "MNIST" / "raw", batches = path() / "cifar-10-batches-bin";
  std::filesystem::create_directories(raw);
  write_idx(12, 4);
  CHECK(found_in() == "");
  for (auto* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::filesystem::rename(path() / name, raw / name);
  write("LICENSE.txt", "some text");
  CHECK(found_in() == raw.string());
  CHECK(open_data_folder(path())->found_in == raw.string());
  std::filesystem::create_directory_symlink(path(), path() / "MNIST" / "again"); // leads nowhere new
  CHECK(found_in() == raw.string());
  // What is in two of them is named, and neither is taken.
  std::filesystem::create_directories(batches);
  write("cifar-10-batches-bin/test_batch.bin", std::string(3073, '\0'));
  auto several = open_image_folder(path());
  REQUIRE(!several);
  CHECK(contains(render(several.error()),
                 "there are images in 2 folders: name one, " + batches.string() + " or " + raw.string()));
  // What is wrong there is said of that file.
  std::filesystem::remove_all(path() / "MNIST");
  auto lacking = open_image_folder(path());
  REQUIRE(!lacking);
  CHECK(contains(render(lacking.error()), "cifar-10-batches-bin/data_batch_1.bin: cannot be read: No such file"));
}

TEST_CASE_FIXTURE(image_folder, "image files: what is stored in a form that is not read is named, with what would do") {
  auto refusal = [&] {
    auto images = open_image_folder(path()), any = open_data_folder(path());
    REQUIRE(!images);
    REQUIRE(!any);
    CHECK(code_of(images.error()) == errc::invalid_argument);
    for (auto* part : {"train-images-idx3-ubyte", "(MNIST)", "(CIFAR-10)", "(CIFAR-100)"})
      CHECK(contains(render(images.error()), part));
    const auto found = render(images.error());
    const auto last = found.rfind("; ");
    CHECK_MESSAGE(contains(render(any.error()), found.substr(last)), render(any.error()));
    return found.substr(last + 2);
  };
  CHECK(contains(refusal(), "train.bin and test.bin (CIFAR-100)"));
  write("notes.txt", "some text");
  CHECK(refusal()
        == (path() / "notes.txt").string()
             + " is text, which models of text take, as bytes of "
               "ringmaster-train does");
  write("cat.png", "\x89PNG");
  CHECK(contains(refusal(), "cat.png is a picture file, which is not read"));
  write("cifar-10-binary.tar.gz", "\x1f\x8b");
  CHECK(contains(refusal(), "cifar-10-binary.tar.gz is packed: unpack it first"));
  std::filesystem::create_directory(path() / "cifar-10-batches-py");
  write("cifar-10-batches-py/data_batch_1", "\x80\x04pickle");
  CHECK(contains(refusal(), "cifar-10-batches-py/data_batch_1 is a Python pickle, which is not read: CIFAR's binary "
                            "version is needed, cifar-10-binary.tar.gz or cifar-100-binary.tar.gz"));
}

TEST_CASE_FIXTURE(cifar_folder, "image files: of two kinds in one folder none is taken") {
  write_idx(12, 4);
  check_image_error(*this, errc::invalid_argument, ": each kind needs a folder of its own");
}

TEST_CASE_FIXTURE(cifar_folder, "image files: a large file, which is mapped, holds the same, until it is truncated") {
  constexpr uint32_t count = 22'000; // of 3,073 bytes, more than 64 MiB; all but three are a hole in the file
  cut("data_batch_5.bin", (count - 1) * 3073);
  overwrite("data_batch_5.bin", (count - 1) * 3073, "\x07" + std::string(3072, '\x66'));
  auto opened = open_data_folder(path());
  REQUIRE(opened);
  auto& x = *opened->training;
  REQUIRE(x.count() == 8 + count);
  std::vector<float> inputs(3072);
  std::vector<uint32_t> labels(1), last{8 + count - 1}, first{0};
  REQUIRE(!x.fill(last, inputs, labels));
  CHECK(labels[0] == 7);
  CHECK(inputs[3071] == 102.f / 255);
  cut("data_batch_5.bin", 4096);
  CHECK(!x.fill(first, inputs, labels)); // of an unchanged file
  auto problem = x.fill(last, inputs, labels);
  CHECK(code_of(problem) == errc::io_error);
  CHECK(contains(render(problem), "data_batch_5.bin: cannot be read: it was truncated after it was opened"));
}
