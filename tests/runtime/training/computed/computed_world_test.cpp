// Every strategy's program, with real numbers: the weights are those of one rank alone.
#include "messages/errc.hpp"
#include "tests/support/training/trained_model.hpp"
#include "tests/support/training_jobs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::training;

TEST_CASE("every strategy's weights are one rank's, also where batches do not divide") {
  size_t runs = 0;
  for (uint64_t batch : {16, 13}) {
    const auto alone = train(small_job("ddp", 8, batch, batch), 1);
    for (auto& which : strategies())
      for (uint64_t micro_batch : {1, 3})
        for (uint32_t ranks : {1, 2, 3, 4, 6, 8})
          for (uint32_t tensor : {0, 2}) {
            auto job = small_job(which.name, 8, batch, micro_batch);
            job.shape.tensor = tensor;
            if (tensor != 0 && which.shares == sharing::none)
              continue;
            if (which.check(job.shape, ranks))
              continue;
            CAPTURE(which.name);
            CAPTURE(batch);
            CAPTURE(micro_batch);
            CAPTURE(ranks);
            CAPTURE(tensor);
            const auto found = train(job, ranks);
            CHECK(distance(found, alone) < 1e-12);
            CHECK(found.loss == doctest::Approx(alone.loss).epsilon(1e-12));
            ++runs;
          }
  }
  CHECK(runs > 250);
}
