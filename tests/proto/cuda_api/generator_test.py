"""Tests of the call table's generator: golden files, and what it must refuse.

    generator_test.py --generator-directory D --cuda-include I --tiny-library L [--update]

--update rewrites the golden files; read the difference before committing it.
"""

import argparse
import dataclasses
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).parent


class Golden(unittest.TestCase):
    """Everything that is emitted for the tiny tables, compared with golden/."""

    maxDiff = None

    def outputs(self):
        library = generator.load_table(HERE / "tiny_table.py")
        exports = surface.read_surface(library, arguments.tiny_library, HERE)
        cublas_entries = emit_cublas_client.entries_source(library, exports)
        yield "commands.h", emit_wire.wire_header(library)
        yield "checks.h", emit_checks.checks_header(library)
        yield "dispatch.h", emit_dispatch.handler_header(library)
        yield "dispatch.cc", emit_dispatch.dispatch_source(library)
        yield "functions.h", emit_server_calls.functions_header(library)
        yield "overrides.h", emit_cudart_client.overrides_header(library, exports)
        yield "entries_stream.cc", emit_cudart_client.entries_source(library, exports)
        yield "entries_calls.cc", cublas_entries
        yield "unsupported_entries.cc", emit_exports.unsupported_source(library, exports)
        yield "exports.map", emit_exports.version_script(library, exports)
        yield "coverage.md", emit_coverage.section(library, exports)
        described = generator.load_table(HERE / "tiny_descriptors_table.py")
        exports = surface.read_surface(described, arguments.tiny_library, HERE)
        yield "descriptors_checks.h", emit_checks.checks_header(described)
        yield "descriptors_calls.cc", emit_cudnn_calls.invoke_functions(described)
        yield "descriptors_functions.h", emit_cudnn_calls.functions_header(described)
        yield "descriptors_entries.cc", emit_cudnn_client.entries_source(described, exports)

    def test_outputs(self):
        for name, text in self.outputs():
            path = HERE / "golden" / (name + ".golden")
            with self.subTest(name):
                if arguments.update:
                    path.write_text(text)
                self.assertEqual(text, path.read_text())


class Subjects(unittest.TestCase):
    """With subjects the server has a handler for each."""

    def setUp(self):
        self.library = generator.load_table(HERE / "tiny_table.py")
        self.library.calls = []
        self.library.subjects = {"Paint": "Paint", "LongTalk": "Ask Wait"}

    def test_each_subject_has_a_handler(self):
        header = emit_dispatch.handler_header(self.library)
        self.assertIn("class TinyPaintHandler {", header)
        self.assertIn("struct TinyHandlers {\n  TinyPaintHandler& paint;\n"
                      "  TinyLongTalkHandler& long_talk;\n};", header)
        self.assertNotIn("class TinyHandler {", header)

    def test_a_command_goes_to_the_handler_of_its_subject(self):
        source = emit_dispatch.dispatch_source(self.library)
        self.assertIn("DispatchTiny(const TinyHandlers& handlers, ", source)
        self.assertIn("RunSync<wire::Wait, wire::WaitResult>(handlers.long_talk, "
                      "&TinyLongTalkHandler::Wait, fields, outcome)", source)

    def test_one_fake_serves_all_subjects(self):
        fake = emit_dispatch.fake_handler(self.library)
        self.assertIn("class FakeTinyHandler : public TinyPaintHandler, "
                      "public TinyLongTalkHandler {", fake)
        self.assertIn("TinyHandlers handlers() { return {*this, *this}; }", fake)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.library = generator.load_table(HERE / "tiny_table.py")

    def add(self, *commands):
        self.library.commands = [*self.library.commands, *commands]

    def test_an_id_is_used_once(self):
        self.add(vocabulary.command(111, "Again", vocabulary.STREAM))
        with self.assertRaisesRegex(ValueError, "id 111 belongs to"):
            self.library.check()

    def test_the_id_of_a_host_form_counts(self):
        self.add(vocabulary.command(112, "Again", vocabulary.STREAM))
        with self.assertRaisesRegex(ValueError, "id 112 belongs to"):
            self.library.check()

    def test_an_id_is_in_the_librarys_range(self):
        self.add(vocabulary.command(200, "Far", vocabulary.STREAM))
        with self.assertRaisesRegex(ValueError, "id 200 is not one of tiny's"):
            self.library.check()

    def test_a_name_is_used_once(self):
        self.add(vocabulary.command(150, "Paint", vocabulary.STREAM))
        with self.assertRaisesRegex(ValueError, "Paint is there twice"):
            self.library.check()

    def test_a_command_belongs_to_one_subject(self):
        self.library.subjects = {"Paint": "Paint", "Talk": "Ask"}
        with self.assertRaisesRegex(ValueError, "Wait is not both a command and listed"):
            self.library.check()
        self.library.subjects = {"Paint": "Paint Wait", "Talk": "Ask Wait"}
        with self.assertRaisesRegex(ValueError, "Wait belongs to two subjects"):
            self.library.check()

    def test_a_stream_command_returns_nothing(self):
        with self.assertRaisesRegex(ValueError, "only SYNC"):
            vocabulary.command(150, "Bad", vocabulary.STREAM, returns=dict(x=vocabulary.u32))

    def read(self):
        return surface.read_surface(self.library, arguments.tiny_library, HERE)

    def test_a_symbol_must_be_exported(self):
        self.library.symbols = [vocabulary.custom("tinyInternal", vocabulary.LOCAL)]
        with self.assertRaisesRegex(ValueError, "tinyInternal is in the table"):
            self.read()

    def test_a_symbol_must_be_declared_somewhere(self):
        self.library.symbols = [vocabulary.custom("tinyHidden", vocabulary.LOCAL)]
        with self.assertRaisesRegex(ValueError, "no header declares tinyHidden"):
            self.read()

    def test_parameters_are_those_of_the_header(self):
        call = self.library.calls[1]
        parameters = {("count" if n == "n" else n): w for n, w in call.parameters.items()}
        self.library.calls = [dataclasses.replace(call, parameters=parameters)]
        with self.assertRaisesRegex(ValueError, "tinySsum has parameters"):
            self.read()

    def test_listed_exports_need_no_library(self):
        self.library.exports = ("tinyVersion", "tinyOther")
        self.library.calls = []
        self.library.symbols = [s for s in self.library.symbols if s.name == "tinyVersion"]
        exports = surface.read_surface(self.library, None, HERE)
        self.assertEqual([(e.name, e.answer) for e in exports],
                         [("tinyOther", surface.Answer.UNSUPPORTED),
                          ("tinyVersion", surface.Answer.LOCAL)])
        self.library.exports = ("tinyOther",)
        with self.assertRaisesRegex(ValueError, "tinyVersion is in the table but its list"):
            self.read()

    def test_what_returns_a_pointer_needs_a_line(self):
        self.library.symbols = [s for s in self.library.symbols if s.name != "tinyName"]
        with self.assertRaisesRegex(ValueError, "tinyName returns const char"):
            self.read()


class RealTables(unittest.TestCase):
    def test_no_id_is_shared_between_libraries(self):
        owners = {}
        for path in sorted(arguments.generator_directory.glob("*.py")):
            if "\nLIBRARY = " not in path.read_text():
                continue
            for command in generator.load_table(path).wire_commands:
                self.assertNotIn(command.id, owners, command.name)
                owners[command.id] = command.name
        self.assertGreater(len(owners), 100)
        self.assertGreaterEqual(min(owners), 64)  # below are the protocol's own


class Headers(unittest.TestCase):
    def test_declarations_of_the_runtime(self):
        text = (arguments.cuda_include / "cuda_runtime_api.h").read_text()
        prototypes = c_prototypes.parse_header(text, ("CUDARTAPI",))
        self.assertEqual(
            prototypes["cudaMemcpyAsync"].declaration(),
            "cudaError_t cudaMemcpyAsync(void * dst, const void * src, size_t count,"
            " enum cudaMemcpyKind kind, cudaStream_t stream)")
        self.assertEqual(prototypes["cudaDeviceSynchronize"].parameters, ())

    def test_the_drivers_newest_forms_have_the_names_that_are_exported(self):
        text = (arguments.cuda_include / "cuda.h").read_text()
        prototypes = c_prototypes.parse_header(text, ("CUDAAPI",))
        c_prototypes.apply_renames(text, prototypes)
        self.assertNotIn("cuMemAlloc", prototypes)
        self.assertEqual(prototypes["cuMemAlloc_v2"].declaration(),
                         "CUresult cuMemAlloc_v2(CUdeviceptr * dptr, size_t bytesize)")
        self.assertIn("cuInit", prototypes)


class Translated(unittest.TestCase):
    def entry(self, name, declaration, expression):
        prototype = c_prototypes.parse_header(declaration, ("API",))["cuCopy"]
        line = vocabulary.translated("cuCopy", expression, vocabulary.Needs.DRIVER)
        export = surface.Export(name, surface.Answer.TRANSLATED, prototype, line)
        return emit_cuda_client.entries_source(generator.load_table(HERE / "tiny_table.py"),
                                               [export])

    def test_the_runtimes_functions_are_those_of_the_seam(self):
        source = self.entry("cuCopy", "CUresult API cuCopy(void* to, int unused);",
                            "cudaCopy{ptds}(to, {stream})")
        self.assertIn("CUresult cuCopy(void* to, int) {\n  return Initialized([&] {"
                      " return Runtime().cudaCopy(to, cudaStreamLegacy); });", source)

    def test_the_per_thread_variant_has_another_default_stream(self):
        source = self.entry("cuCopy_ptds", "CUresult API cuCopy(void* to);",
                            "cudaCopy{ptds}(to, {stream})")
        self.assertIn("return Runtime().cudaCopy_ptds(to, cudaStreamPerThread);", source)
        source = self.entry("cuCopy_ptsz", "CUresult API cuCopy(void* to, CUstream hStream);",
                            "cudaCopy(to, hStream)")
        self.assertIn("return Runtime().cudaCopy(to, PerThread(hStream));", source)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--generator-directory", type=pathlib.Path, required=True)
    parser.add_argument("--cuda-include", type=pathlib.Path, required=True)
    parser.add_argument("--tiny-library", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.generator_directory))
    import c_prototypes
    import emit_checks
    import emit_coverage
    import emit_cublas_client
    import emit_cuda_client
    import emit_cudart_client
    import emit_cudnn_calls
    import emit_cudnn_client
    import emit_dispatch
    import emit_exports
    import emit_server_calls
    import emit_wire
    import generator
    import surface
    import vocabulary
    unittest.main(argv=sys.argv[:1])
