from unmask.cli.start import main

main()
