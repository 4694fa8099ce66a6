// Writes the SDK of a package as the language hosts of Pulumi write it for `pulumi package add`: they call the same
// functions. Arguments: language, folder. Standard input: the schema of the package.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "pulumi"

// loader knows no other package: the schema names none.
type loader struct{ schema.ReferenceLoader }

func generate(language string, pkg *schema.Package) (map[string][]byte, error) {
	switch language {
	case "go":
		return gogen.GeneratePackage(tool, pkg, nil)
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, true, loader{})
	default:
		return python.GeneratePackage(tool, pkg, nil, loader{})
	}
}

func write(folder string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	var spec schema.PackageSpec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		log.Fatal(err)
	}
	pkg, found, err := schema.BindSpec(spec, loader{}, schema.ValidationOptions{})
	if err != nil || found.HasErrors() {
		log.Fatal(err, found)
	}
	files, err := generate(os.Args[1], pkg)
	if err != nil {
		log.Fatal(err)
	}
	if err := write(os.Args[2], files); err != nil {
		log.Fatal(err)
	}
}
