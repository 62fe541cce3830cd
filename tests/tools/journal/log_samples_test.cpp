#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/journal/log_samples.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace ringmaster;

namespace {

proto::Record step_record(uint64_t step, uint64_t epoch, uint64_t first, uint64_t run = 5) {
  proto::Record result;
  auto& x = *result.mutable_training_step();
  x.set_run(run);
  x.set_step(step);
  x.set_epoch(epoch);
  x.set_first_sample(first);
  x.set_samples(4);
  x.set_data_samples(10);
  x.set_seed(1234);
  x.add_device_ids(1);
  x.add_device_ids(2);
  return result;
}

} // namespace

TEST_CASE("the log shows the samples of each step once, also for repeated steps") {
  // Step 1 was done again, after step 2 had been; the order is CPython's shuffle of ten with the seed 1234.
  const std::vector records{step_record(0, 0, 0), step_record(1, 0, 4), step_record(2, 1, 0), step_record(1, 0, 4),
                            step_record(2, 1, 0)};
  auto found = samples_text(records, false);
  REQUIRE(found);
  CHECK(found->find("training 5, epoch 0, step 0 over 2 ranks: 2 8 3 5\n"
                    "training 5, epoch 0, step 1 over 2 ranks: 6 4 9 0\n"
                    "training 5, epoch 0: 8 of 10 samples in 2 steps, each once\n"
                    "training 5, epoch 1, step 2 over 2 ranks: ")
        == 0);
  CHECK(found->find("training 5, epoch 1: 4 of 10 samples in 1 step, each once\n") != std::string::npos);

  auto json = samples_text({step_record(0, 0, 0)}, true);
  REQUIRE(json);
  CHECK(*json == "{\"run\":\"5\",\"epoch\":0,\"step\":0,\"samples\":[2,8,3,5]}\n");
  CHECK(samples_text({}, false) == std::string{});
}

TEST_CASE("the log shows a training that another run continued as one training") {
  auto of = [](const std::vector<proto::Record>& records) {
    auto found = samples_text(records, true);
    REQUIRE(found);
    std::string steps;
    for (size_t at = 0; (at = found->find("\"run\":", at)) != found->npos; ++at)
      steps += found->substr(at + 6, found->find(",\"samples", at) - at - 6) + " ";
    return steps;
  };
  // Run 5 was killed behind step 3, and run 6 goes on from a checkpoint behind step 1.
  std::vector records{step_record(0, 0, 0), step_record(1, 0, 4), step_record(2, 1, 0), step_record(3, 1, 4)};
  records.push_back(step_record(2, 1, 0, 6));
  CHECK(of(records) == R"("5","epoch":0,"step":0 "5","epoch":0,"step":1 "5","epoch":1,"step":2 )");
  auto other = step_record(3, 1, 4, 7); // of another seed: its beginning is in another journal
  other.mutable_training_step()->set_seed(8);
  CHECK(of({step_record(0, 0, 0), step_record(1, 0, 4), step_record(2, 1, 0), other})
          .ends_with(R"("7","epoch":1,"step":3 )"));
  CHECK(of({step_record(0, 0, 0), step_record(0, 0, 0, 9)}) == R"("5","epoch":0,"step":0 "9","epoch":0,"step":0 )");
  // Two that are alike share a journal, and a third one's beginning is in another.
  auto of_training = [](uint64_t training, uint64_t run, uint64_t step) {
    auto x = step_record(step, step / 2, step % 2 * 4, run);
    x.mutable_training_step()->set_training(training);
    return x;
  };
  CHECK(of({of_training(5, 5, 0), of_training(6, 6, 0), of_training(5, 7, 1), of_training(6, 8, 1),
            of_training(5, 9, 2), of_training(3, 4, 2)})
        == R"("5","epoch":0,"step":0 "5","epoch":0,"step":1 "5","epoch":1,"step":2 )"
           R"("6","epoch":0,"step":0 "6","epoch":0,"step":1 "4","epoch":1,"step":2 )");
}

TEST_CASE("an impossible record of training is named") {
  auto wrong = step_record(3, 0, 0);
  wrong.mutable_training_step()->set_samples(0);
  auto found = samples_text({wrong}, false);
  REQUIRE(!found);
  CHECK(code_of(found.error()) == errc::corrupt);
  CHECK(render(found.error()) == "the record of step 3 of training 5 says 0 of 10 samples");
}
