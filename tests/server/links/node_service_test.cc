#include "server/links/node_service.h"

#include <gtest/gtest.h>

#include "tests/server/links/recording_listener.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

TEST(NodeService, CarriesOperationsAndAnswers) {
  RecordingListener listener;
  NodeService service(listener);
  TestServer server(service);
  const auto stub = v1::Node::NewStub(server.Dial());
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::ExecutorMessage message;
  message.mutable_register_()->set_gpu(3);
  stream->Write(message);
  const auto event = listener.NextExecutor();
  ASSERT_TRUE(event.message);
  EXPECT_EQ(event.message->register_().gpu(), 3);
  event.done();
  v1::DaemonMessage operation;
  operation.set_operation_id(17);
  operation.mutable_shutdown();
  event.link->Send(operation);
  v1::DaemonMessage received;
  ASSERT_TRUE(stream->Read(&received));
  EXPECT_EQ(received.operation_id(), 17u);
  context.TryCancel();
  EXPECT_FALSE(listener.NextExecutor().message);
}

}  // namespace
}  // namespace torpor::server
