#pragma once

#include "actors/training/messages.hpp"

// Beside those of messages/type_ids.hpp: a program whose ranks are in several processes has them in its configuration,
// add_message_types<caf::id_block::ringmaster_training>().
CAF_BEGIN_TYPE_ID_BLOCK(ringmaster_training, caf::id_block::ringmaster::end)

CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_ready))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::step_order))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_arrival))
CAF_ADD_TYPE_ID(ringmaster_training, (std::vector<ringmaster::training::rank_arrival>))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::room_wanted))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::room_found))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::exchange_ended))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::part_wanted))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::part_found))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::part_sought))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::part_request))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_ended))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_failed))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::step_abandoned))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_alive))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::run_over))
CAF_ADD_TYPE_ID(ringmaster_training, (ringmaster::training::rank_leaving))

CAF_END_TYPE_ID_BLOCK(ringmaster_training)
