from stream_pegasos.cli import main

if __name__ == "__main__":
    main()
