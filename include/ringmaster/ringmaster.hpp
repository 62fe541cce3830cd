#pragma once

/// \file
/// The public interface, all but module.hpp, which needs libtorch.

#include <ringmaster/algorithm.hpp>
#include <ringmaster/client.hpp>
#include <ringmaster/cluster.hpp>
#include <ringmaster/collectives.hpp>
#include <ringmaster/communicator.hpp>
#include <ringmaster/datatype.hpp>
#include <ringmaster/errors.hpp>
#include <ringmaster/ids.hpp>
#include <ringmaster/journal.hpp>
#include <ringmaster/layer.hpp>
#include <ringmaster/memory.hpp>
#include <ringmaster/plan.hpp>
#include <ringmaster/process_group.hpp>
#include <ringmaster/reduce_op.hpp>
#include <ringmaster/schedule.hpp>
#include <ringmaster/simulate.hpp>
#include <ringmaster/strategy.hpp>
#include <ringmaster/tensor_parallel.hpp>
#include <ringmaster/training_run.hpp>
#include <ringmaster/version.hpp>
#include <ringmaster/work.hpp>
