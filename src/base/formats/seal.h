// SPDX-License-Identifier: Apache-2.0
// A trailer after an artifact's ELF content that lets the loader see every flipped bit before it maps the file.
// Weights are hashed apart: they cannot crash a process, and reading them all would make loading slow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright {

struct ArtifactSeal {
  uint64_t elf_bytes = 0;                        // the file without the trailer
  uint64_t params_offset = 0, params_bytes = 0;  // in the file; left out of content_hash
  uint64_t content_hash = 0, params_hash = 0;
};

// The trailer for a finished library or object; append it to the file. (Linkers do not read behind the sections.)
// Errors: BadArtifact (no valid ELF file).
Result<std::string> make_artifact_seal(std::span<const std::byte> elf);
// Seals a finished file in place. Errors: BadArtifact, CannotWrite.
Status append_artifact_seal(const std::string& path);
// The seal at the end of a file, or nothing when there is none. Errors: BadArtifact (damaged trailer).
Result<std::optional<ArtifactSeal>> read_artifact_seal(std::span<const std::byte> file);
// Compares the file's content (and its weights, when asked) with the seal. Errors: BadArtifact.
Status check_artifact_seal(std::span<const std::byte> file, const ArtifactSeal& seal, bool params_too);
// What is sealed of an object file, or of the members of an archive, is as it was written; a linker would take damaged
// code as it is. Files without a seal pass. Errors: FileNotFound, BadArtifact.
Status check_object_seals(const std::string& path);

}  // namespace tilewright
