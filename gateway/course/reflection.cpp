#include "gateway/course/reflection.hpp"

#include <course.pb.h>
#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1alpha/reflection.pb.h>

#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

namespace ringmaster::gateway {

namespace {

namespace pb = google::protobuf;
namespace wire = grpc::reflection::v1alpha;

/// ".ringmaster.course.DeviceId" as ".gpu_sim.DeviceId".
std::string published(const std::string& name) {
  constexpr std::string_view ours = ".ringmaster.course.", theirs = ".gpu_sim.";
  return name.starts_with(ours) ? std::string{theirs} + name.substr(ours.size()) : name;
}

void publish(pb::DescriptorProto& message) {
  for (auto& field : *message.mutable_field())
    if (field.has_type_name())
      field.set_type_name(published(field.type_name()));
  for (auto& nested : *message.mutable_nested_type())
    publish(nested);
}

/// The file gpu_sim.proto with the package that clients know.
pb::FileDescriptorProto course_file() {
  pb::FileDescriptorProto result;
  course::CommInitRequest::descriptor()->file()->CopyTo(&result);
  result.set_name("gpu_sim.proto");
  result.set_package("gpu_sim");
  for (auto& message : *result.mutable_message_type())
    publish(message);
  for (auto& service : *result.mutable_service())
    for (auto& method : *service.mutable_method()) {
      method.set_input_type(published(method.input_type()));
      method.set_output_type(published(method.output_type()));
    }
  return result;
}

/// What clients may ask for: the course protocol, health and reflection.
const pb::DescriptorPool& served_files() {
  static const auto* pool = [] {
    auto* result = new pb::DescriptorPool; // until the process ends
    result->BuildFile(course_file());
    for (const auto* file : {grpc::health::v1::HealthCheckRequest::descriptor()->file(),
                             wire::ServerReflectionRequest::descriptor()->file()}) {
      pb::FileDescriptorProto copy;
      file->CopyTo(&copy);
      result->BuildFile(copy);
    }
    return result;
  }();
  return *pool;
}

void answer_file(const pb::FileDescriptor* file, const std::string& wanted, wire::ServerReflectionResponse& answer) {
  if (file == nullptr) {
    answer.mutable_error_response()->set_error_code(grpc::NOT_FOUND);
    answer.mutable_error_response()->set_error_message("there is no " + wanted);
    return;
  }
  pb::FileDescriptorProto copy;
  file->CopyTo(&copy);
  answer.mutable_file_descriptor_response()->add_file_descriptor_proto(copy.SerializeAsString());
}

wire::ServerReflectionResponse answer_to(const wire::ServerReflectionRequest& request) {
  wire::ServerReflectionResponse result;
  result.set_valid_host(request.host());
  *result.mutable_original_request() = request;
  auto& files = served_files();
  switch (request.message_request_case()) {
    case wire::ServerReflectionRequest::kListServices:
      for (auto name : {"gpu_sim.GPUCoordinator", "gpu_sim.GPUDevice", "grpc.health.v1.Health",
                        "grpc.reflection.v1alpha.ServerReflection"})
        result.mutable_list_services_response()->add_service()->set_name(name);
      break;
    case wire::ServerReflectionRequest::kFileByFilename:
      answer_file(files.FindFileByName(request.file_by_filename()), request.file_by_filename(), result);
      break;
    case wire::ServerReflectionRequest::kFileContainingSymbol:
      answer_file(files.FindFileContainingSymbol(request.file_containing_symbol()), request.file_containing_symbol(),
                  result);
      break;
    case wire::ServerReflectionRequest::kFileContainingExtension:
    case wire::ServerReflectionRequest::kAllExtensionNumbersOfType:
      answer_file(nullptr, "extension of these messages", result);
      break;
    case wire::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      result.mutable_error_response()->set_error_code(grpc::INVALID_ARGUMENT);
      result.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return result;
}

/// Answers one request after the other.
class reflection_call final : public grpc::ServerGenericBidiReactor {
public:
  reflection_call() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok)
      return Finish(grpc::Status::OK);
    wire::ServerReflectionRequest request;
    grpc::ProtoBufferReader reader{&request_};
    if (!request.ParseFromZeroCopyStream(&reader))
      return Finish({grpc::INVALID_ARGUMENT, "the request is no ServerReflectionRequest"});
    const auto text = answer_to(request).SerializeAsString();
    grpc::Slice bytes{text};
    answer_ = grpc::ByteBuffer{&bytes, 1};
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override { ok ? StartRead(&request_) : Finish(grpc::Status::OK); }
  void OnDone() override { delete this; }

private:
  grpc::ByteBuffer request_, answer_;
};

} // namespace

grpc::ServerGenericBidiReactor* new_reflection() {
  return new reflection_call;
}

} // namespace ringmaster::gateway
