#include "runtime/launchers/hydra_job.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("hydra_job: mpiexec's daemon names the address that all hosts of the job share") {
  CHECK(hydra_job_in({"/usr/bin/hydra_pmi_proxy", "--control-port", "head:40123", "--rmk", "user", "--launcher", "ssh",
                      "--pgid", "0", "--retries", "10", "--usize", "-2", "--proxy-id", "1"})
        == "head:40123/0");
  CHECK(hydra_job_in({"sh", "./hydra_pmi_proxy", "--control-port", "head:1"}) == "head:1");
  CHECK(hydra_job_in({"/opt/intel/bin/hydra_bstrap_proxy", "--upstream-host", "head", "--upstream-port", "37000",
                      "--pgid", "3", "--launcher", "ssh"})
        == "head:37000/3");
}

TEST_CASE("hydra_job: other programs have none") {
  CHECK_FALSE(hydra_job_in({}));
  CHECK_FALSE(hydra_job_in({"bash", "-c", "x", "hydra_pmi_proxy", "--control-port", "head:1"}));
  CHECK_FALSE(hydra_job_in({"mpiexec", "--control-port", "head:1"}));
  CHECK_FALSE(hydra_job_in({"hydra_pmi_proxy", "--control-port"}));
  CHECK_FALSE(hydra_job_in({"hydra_pmi_proxy", "--usize", "-2"}));
  CHECK_FALSE(hydra_job_of_ancestors()); // of this test
}
