# The released program: the package that each release writes (.goreleaser.yaml) in the repository of Nix packages.
{
  description = "Live profiler for LLM inference in the terminal";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
    releases = { url = "github:llmtop/nur"; flake = false; };
  };

  outputs = { nixpkgs, releases, ... }: {
    packages = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ] (system: {
      default = nixpkgs.legacyPackages.${system}.callPackage "${releases}/pkgs/llmtop" { };
    });
  };
}
