#include "examples/service/endpoint.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace torpor::examples {
namespace {

HttpResponse Echo(const HttpRequest& request) { return {200, request.body}; }

TEST(InferenceHandlerTest, AnswersItsPathAndSaysThatItIsUp) {
  const HttpServer::Handler handler = InferenceHandler("/predict", Echo);
  EXPECT_EQ(handler({"POST", "/predict", "", "pixels"}).body, "pixels");
  EXPECT_EQ(handler({"GET", "/healthz", "", ""}).status, 200);
}

TEST(InferenceHandlerTest, RefusesTheRest) {
  const HttpServer::Handler handler = InferenceHandler("/predict", Echo);
  EXPECT_EQ(handler({"POST", "/other", "", ""}).status, 404);
  EXPECT_EQ(handler({"GET", "/predict", "", ""}).status, 405);
}

TEST(InferenceHandlerTest, AFailureDoesNotKeepTheNextRequestOut) {
  const HttpServer::Handler handler =
      InferenceHandler("/predict", [](const HttpRequest& request) -> HttpResponse {
        if (request.body.empty()) throw std::runtime_error("no body");
        return {200, request.body};
      });
  EXPECT_THROW(handler({"POST", "/predict", "", ""}), std::runtime_error);
  EXPECT_EQ(handler({"POST", "/predict", "", "x"}).body, "x");
}

}  // namespace
}  // namespace torpor::examples
