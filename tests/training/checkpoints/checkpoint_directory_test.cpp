#include "training/checkpoints/checkpoint_directory.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/checkpoints/small_disk.hpp"
#include "tests/training/checkpoints/tensor_files.hpp"
#include "training/checkpoints/durable_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

using steps_list = std::vector<uint64_t>;

struct checkpoints {
  temporary_directory directory;
  checkpoint_directory kept{directory.path() / "run" / "one", 3};

  /// A model whose only weight is the step's number.
  caf::error save(uint64_t step, size_t elements = 1) const {
    const std::vector<float> values(elements, static_cast<float>(step));
    return kept.save(step, {floats("weight", values)});
  }
  void save_all(const steps_list& which) const {
    for (auto step : which)
      REQUIRE(!save(step));
  }
  steps_list steps() const {
    auto found = kept.steps();
    REQUIRE(found);
    return *found;
  }
  checkpoint_directory::checkpoint newest() const {
    auto found = kept.newest();
    REQUIRE(found);
    REQUIRE(found->has_value());
    return std::move(**found);
  }
  void cut(uint64_t step) const {
    const auto file = kept.file_of(step);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  }
};

float weight_of(const checkpoint_directory::checkpoint& x) {
  float result = 0;
  std::memcpy(&result, x.content.find("weight")->bytes.data(), sizeof result);
  return result;
}

} // namespace

TEST_CASE_FIXTURE(checkpoints, "checkpoints: the newest few stay, and the newest is read") {
  save_all({1, 2, 9, 10, 123});
  CHECK(steps() == steps_list{9, 10, 123});
  CHECK(kept.file_of(123).filename() == "step-000123.safetensors");
  auto found = newest();
  CHECK(found.step == 123);
  CHECK(weight_of(found) == 123);
  CHECK(found.torn.empty());
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: a directory without any has none, and is no error") {
  auto found = kept.newest();
  REQUIRE(found);
  CHECK(!found->has_value());
  CHECK(steps().empty());
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: a torn one is named, and the one before is taken") {
  save_all({1, 2, 3});
  cut(3);
  auto found = newest();
  CHECK(found.step == 2);
  CHECK(weight_of(found) == 2);
  REQUIRE(found.torn.size() == 1);
  CHECK(contains(found.torn[0],
                 "step-000003.safetensors: the tensors have 4 bytes of data together, and the file has 3"));
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: a file without a digest, or with other bytes, is none to go on from") {
  save_all({1});
  const std::vector<float> values{2};
  REQUIRE(!write_safetensors(kept.file_of(2), {floats("weight", values)}));
  auto content = content_of(kept.file_of(2));
  content.back() ^= 1;
  write_content(kept.file_of(2), content);
  content.replace(content.find(digest_key), digest_key.size(), std::string(digest_key.size(), 'x'));
  write_content(kept.file_of(3), content);
  auto found = newest();
  CHECK(found.step == 1);
  REQUIRE(found.torn.size() == 2);
  CHECK(contains(found.torn[0], "step-000003.safetensors: it has no ringmaster.xxh3"));
  CHECK(contains(found.torn[1], "step-000002.safetensors: its bytes are not those that were written"));
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: one that has another step's name is named, and the one before is taken") {
  save_all({1, 2});
  std::filesystem::rename(kept.file_of(2), kept.file_of(7));
  auto found = newest();
  CHECK(found.step == 1);
  REQUIRE(found.torn.size() == 1);
  CHECK(contains(found.torn[0], "step-000007.safetensors is of step 2, as it says itself: "));
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: where all are torn that is an error, not a fresh start") {
  save_all({1, 2});
  cut(1);
  cut(2);
  auto found = kept.newest();
  REQUIRE(!found);
  CHECK(code_of(found.error()) == errc::corrupt);
  for (auto* part : {"no checkpoint can be used", "step-000001.safetensors: ", "step-000002.safetensors: ",
                     ". A copy of one would do, or a new run in another folder"})
    CHECK(contains(render(found.error()), part));
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: who went on from an earlier step removes nothing that is later") {
  save_all({10, 20, 30});
  cut(30);
  save_all({21, 22});
  CHECK(steps() == steps_list{20, 21, 22, 30});
  CHECK(newest().step == 22);
  save_all({30});
  CHECK(newest().step == 30);
  CHECK(steps() == steps_list{21, 22, 30});
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: on a full disk the earlier ones stay as they were") {
  save_all({1, 2, 3});
  const auto before = content_of(kept.file_of(1));
  caf::error problem;
  {
    file_size_limit disk{32 * 1024};
    problem = save(4, 100'000);
  }
  CHECK(code_of(problem) == errc::no_space);
  CHECK(contains(render(problem), "step-000004.safetensors: cannot be written: File too large"));
  CHECK(steps() == steps_list{1, 2, 3});
  CHECK(content_of(kept.file_of(1)) == before);
  CHECK(newest().step == 3);
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: a damaged one does not count, so an older whole one stays in its place") {
  save_all({1, 2, 3});
  cut(2);
  auto content = content_of(kept.file_of(3));
  content.back() ^= 1; // of the same size
  write_content(kept.file_of(3), content);
  save_all({4});
  CHECK(steps() == steps_list{1, 2, 3, 4});
  save_all({5});
  CHECK(steps() == steps_list{1, 2, 3, 4, 5}); // 1, 4 and 5 are whole
  save_all({6});
  CHECK(steps() == steps_list{4, 5, 6});
  cut(6);
  cut(5);
  CHECK(newest().step == 4);
  save_all({7, 8});
  CHECK(steps() == steps_list{4, 5, 6, 7, 8});
}

TEST_CASE("checkpoints: a full disk removes older ones where the newest is whole, and none where it is damaged") {
  // A disk that holds three of them and no fourth.
  const auto story = [](bool damaged) {
    return on_small_disk(1'400'000, [damaged](const std::filesystem::path& disk) {
      const checkpoint_directory kept{disk / "run", 3};
      auto save = [&](uint64_t step) {
        const std::vector<float> values(100'000, static_cast<float>(step));
        return kept.save(step, {floats("weight", values)});
      };
      for (uint64_t step : {1, 2, 3})
        if (auto problem = save(step))
          return render(problem);
      if (damaged)
        std::filesystem::resize_file(kept.file_of(3), std::filesystem::file_size(kept.file_of(3)) - 1);
      const auto problem = save(4);
      const auto found = kept.newest();
      return fmt::format("{}; there are {}, and {} is the newest that is whole",
                         code_of(problem) == errc::no_space ? "not saved" : render(problem),
                         fmt::join(*kept.steps(), ", "), (*found)->step);
    });
  };
  const auto whole = story(false), damaged = story(true);
  if (!whole || !damaged) {
    MESSAGE("skipped: this kernel lets no test mount a file system of its own");
    return;
  }
  CHECK(contains(*whole, "; there are 3, 4, and 4 is the newest that is whole"));
  CHECK(*damaged == "not saved; there are 1, 2, 3, and 2 is the newest that is whole");
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: drafts that a killed process left are removed, and other files are not") {
  save_all({1});
  auto draft = kept.file_of(2);
  draft += draft_suffix;
  write_content(draft, "half");
  const auto other = kept.file_of(2).parent_path() / "notes.part",
             odd = kept.file_of(2).parent_path() / "step-7.safetensors";
  write_content(other, "mine");
  write_content(odd, "mine");
  CHECK(steps() == steps_list{1});
  save_all({3});
  CHECK(!std::filesystem::exists(draft));
  CHECK(std::filesystem::exists(other));
  CHECK(std::filesystem::exists(odd));
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: a directory that cannot be one is an error that names it") {
  write_content(directory.path() / "file", "");
  const checkpoint_directory wrong{directory.path() / "file", 1};
  auto problem = wrong.save(1, {});
  CHECK(code_of(problem) == errc::io_error);
  CHECK(contains(render(problem), "/file: cannot be made a directory"));
  CHECK(code_of(wrong.newest().error()) == errc::io_error);
}

TEST_CASE_FIXTURE(checkpoints, "checkpoints: one run writes; another one is refused until it has finished") {
  {
    auto first = kept;
    REQUIRE(!first.claim());
    auto second = kept;
    auto refused = second.claim();
    CHECK(code_of(refused) == errc::in_use);
    CHECK(contains(render(refused), "run/one: another run writes its checkpoints there, and has not ended"));
    CHECK(steps().empty());
    CHECK(!first.training());
    CHECK(!first.begin_training(1234567));
    CHECK(!first.begin_training(UINT64_MAX));
    CHECK(!first.begin_training(89));
  }
  auto third = kept;
  CHECK(!third.claim());
  CHECK(third.training() == 89);
}
